// A runtime directory with a socket for device 0. A thread answers requests as the test specifies.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "emulator/abi/control.h"

namespace rocemu::test {

struct Answer {
  abi::Reply reply{};    // the thread sets magic, version, op and sequence
  std::vector<int> fds;  // closed once sent
  bool hang_up = false;  // instead of answering
};

class FakeDaemon {
 public:
  using Handler = std::function<Answer(const abi::Request&, const std::vector<int>& fds)>;

  explicit FakeDaemon(Handler handler = nullptr);
  ~FakeDaemon();

  const std::string& dir() const { return dir_; }
  std::string device() const { return dir_ + "/dev/infiniband/uverbs0"; }
  void write_file(const std::string& name, const std::string& text);
  /// Stops accepting connections. The socket's name remains, as after a crash of the daemon.
  void die();

 private:
  void serve();
  void serve_connection(int connection);

  Handler handler_;
  std::string dir_;
  int listener_ = -1;
  std::thread thread_;
};

/// Sets an environment variable while this object exists; null unsets it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value);
  ~ScopedVariable();

 private:
  std::string name_;
  bool was_set_;
  std::string old_;
};

}  // namespace rocemu::test
