// A program that closes every descriptor that it does not know, as daemons do, and opens others
// with the same numbers. So the descriptors of the preload libraries do not exist any more.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main() {
  constexpr int kLast = 1024;
  for (int fd = 3; fd < kLast; ++fd) close(fd);
  sleep(50);
  std::printf("closed\n");
  std::fflush(stdout);
  for (int fd = 3; fd < kLast; ++fd) dup2(STDOUT_FILENO, fd);
  sleep(50);
  std::printf("replaced\n");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    sleep(7);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WEXITSTATUS(status));
}
