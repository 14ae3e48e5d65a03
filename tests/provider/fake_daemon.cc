#include "tests/provider/fake_daemon.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rocemu::test {

FakeDaemon::FakeDaemon(Handler handler) : handler_(std::move(handler)) {
  char name[] = "/tmp/rocemu-provider-test-XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
  dir_ = name;
  std::filesystem::create_directories(dir_ + "/dev/infiniband");
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, device().c_str());
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 8) != 0) {
    throw std::runtime_error("bind");
  }
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  die();
  std::filesystem::remove_all(dir_);
}

void FakeDaemon::die() {
  if (!thread_.joinable()) return;
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

void FakeDaemon::write_file(const std::string& name, const std::string& text) {
  const std::string path = dir_ + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

void FakeDaemon::serve() {
  for (;;) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    serve_connection(connection);
    close(connection);
  }
}

void FakeDaemon::serve_connection(int connection) {
  for (;;) {
    abi::Request request;
    iovec part{&request, sizeof(request)};
    alignas(cmsghdr) char control[256];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != sizeof(request)) return;
    std::vector<int> fds;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
      fds.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(fds.data(), CMSG_DATA(header), fds.size() * sizeof(int));
    }
    Answer answer = handler_ ? handler_(request, fds) : Answer{};
    for (int fd : fds) close(fd);
    if (answer.hang_up) return;
    answer.reply.magic = abi::kMagic;
    answer.reply.version = abi::kVersion;
    answer.reply.op = request.op;
    answer.reply.sequence = request.sequence;
    part = {&answer.reply, sizeof(answer.reply)};
    const size_t bytes = answer.fds.size() * sizeof(int);
    message.msg_control = bytes == 0 ? nullptr : control;
    message.msg_controllen = bytes == 0 ? 0 : CMSG_SPACE(bytes);
    if (bytes != 0) {
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(bytes);
      memcpy(CMSG_DATA(header), answer.fds.data(), bytes);
      memset(CMSG_DATA(header) + bytes, 0, CMSG_SPACE(bytes) - CMSG_LEN(bytes));
    }
    sendmsg(connection, &message, MSG_NOSIGNAL);
    for (int fd : answer.fds) close(fd);
  }
}

ScopedVariable::ScopedVariable(const char* name, const char* value) : name_(name) {
  const char* old = getenv(name);
  was_set_ = old != nullptr;
  if (was_set_) old_ = old;
  if (value != nullptr) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
}

ScopedVariable::~ScopedVariable() {
  if (was_set_) {
    setenv(name_.c_str(), old_.c_str(), 1);
  } else {
    unsetenv(name_.c_str());
  }
}

}  // namespace rocemu::test
