// Closes a descriptor in one thread while another thread waits for it. In Linux, the waiting call
// still waits for its file, and returns when data arrives there later. The argument names the call.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

int fds[2];
std::string way;

long wait_for_it() {
  char byte = 0;
  if (way == "read") return read(fds[0], &byte, 1);
  if (way == "recv") return recv(fds[0], &byte, 1, 0);
  if (way == "poll" || way == "poll-timeout") {
    pollfd entry{fds[0], POLLIN, 0};
    const int result = poll(&entry, 1, way == "poll" ? -1 : 300);
    std::printf("revents %d\n", entry.revents);
    return result;
  }
  if (way == "select-timeout") {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    timeval timeout{0, 300'000};
    return select(fds[0] + 1, &set, nullptr, nullptr, &timeout);
  }
  if (way == "epoll-of-it") {
    epoll_event event{};
    return epoll_wait(fds[0], &event, 1, -1);
  }
  if (way == "flock") return flock(fds[0], LOCK_EX);
  return -2;
}

void* waiter(void*) {
  const long result = wait_for_it();
  std::printf("returned %ld %s\n", result, result < 0 ? std::strerror(errno) : "");
  std::fflush(stdout);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  way = argv[1];
  int other = -1;  // the descriptor by which the waiter is finally woken
  if (way == "epoll-of-it") {
    int pair[2];
    if (pipe(pair) != 0) return 2;
    fds[0] = epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(fds[0], EPOLL_CTL_ADD, pair[0], &event);
    other = pair[1];
  } else if (way == "flock") {
    char name[] = "/tmp/rocemu-lock-XXXXXX";
    other = mkstemp(name);
    if (other < 0 || flock(other, LOCK_EX) != 0) return 2;
    fds[0] = open(name, O_RDWR);
    unlink(name);
  } else {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return 2;
    other = fds[1];
  }
  pthread_t thread;
  pthread_create(&thread, nullptr, waiter, nullptr);
  usleep(100'000);
  close(fds[0]);
  const bool has_many = way.starts_with("poll") || way.starts_with("select");
  if (!has_many) {
    // Another file immediately gets the same number, and it has the data that the waiter waits for.
    int pair[2];
    if (pipe(pair) != 0 || write(pair[1], "x", 1) != 1) return 2;
    const bool is_same = pair[0] == fds[0] || pair[1] == fds[0];
    std::printf("the number %s\n", is_same ? "is used again" : "is free");
  }
  usleep(100'000);
  std::puts("now");
  std::fflush(stdout);
  if (way == "flock") {
    flock(other, LOCK_UN);
  } else if (!has_many && write(other, "y", 1) != 1) {
    return 2;
  }
  usleep(300'000);
  std::fflush(stdout);
  _exit(0);
}
