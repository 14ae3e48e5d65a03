// Runs code in a child of fork(). The child reports over a pipe the errors that it finds and, if it
// crashes, its last action.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>

namespace rocemu::system_test {

/// The child's side.
class Report {
 public:
  explicit Report(int to) : to_(to) {}

  void begins(const char* what) const { line('.', what); }
  void wrong(const std::string& what) const { line('!', what); }
  void expect(bool right, const std::string& what) const {
    if (!right) wrong(what);
  }

 private:
  void line(char kind, const std::string& text) const {
    const std::string all = kind + text + '\n';
    if (::write(to_, all.data(), all.size()) < 0) _exit(9);
  }

  int to_;
};

/// How a process makes a child: with the C library's fork(), which notifies all libraries, or with
/// a system call, which notifies none.
enum class Forking { kByLibrary, kBySystemCall };

/// Runs `act` in a child. Returns the errors that it found, or its last action if it crashed or
/// hung, or "" if there was no error.
inline std::string in_child(const std::function<void(const Report&)>& act,
                            Forking forking = Forking::kByLibrary) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = forking == Forking::kByLibrary
                          ? fork()
                          : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child < 0) return "no child";
  if (child == 0) {
    close(ends[0]);
    signal(SIGALRM, SIG_DFL);
    alarm(60);  // if a verb hangs, a signal ends the child
    act(Report(ends[1]));
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t size; (size = read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string wrong, latest;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string line = text.substr(begin + 1, end - begin - 1);
    if (text[begin] == '!') {
      wrong += line + '\n';
    } else {
      latest = line;
    }
  }
  if (WIFSIGNALED(status)) {
    wrong += std::string(strsignal(WTERMSIG(status))) + " in " + latest + '\n';
  } else if (status != 0) {
    wrong += "status " + std::to_string(status) + '\n';
  }
  return wrong;
}

}  // namespace rocemu::system_test
