// A process that writes more than the buffers of a connection can hold, and one that reads it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

struct Stream {
  int writer, reader;
};

void must(bool succeeds, const std::string& call) {
  if (!succeeds) fail(call);
}

Stream connect_over_loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(::bind(listener, generic, sizeof address) == 0, "bind");
  must(::listen(listener, 1) == 0, "listen");
  must(getsockname(listener, generic, &size) == 0, "getsockname");
  const int writer = socket(AF_INET, SOCK_STREAM, 0);
  must(::connect(writer, generic, sizeof address) == 0, "connect");
  return {writer, ::accept(listener, nullptr, nullptr)};
}

void write_all(int fd, size_t bytes) {
  static char data[4000];
  for (size_t i = 0; bytes != 0; ++i) {
    const size_t wanted = std::min(bytes, 1000 + i % 4 * 1000);
    const ssize_t written = write(fd, data, wanted);
    must(written > 0, "write");
    bytes -= static_cast<size_t>(written);
  }
}

}  // namespace

/// Reads a stream that is larger than the socket buffers. How much each read(2) returns depends on
/// how much the buffers took before the writer had to wait.
void stream_over_tcp(uint32_t kilobytes) {
  const Stream stream = connect_over_loopback();
  if (fork() == 0) {
    close(stream.reader);
    write_all(stream.writer, size_t{kilobytes} * 1000);
    _exit(0);
  }
  close(stream.writer);
  static char data[8192];
  std::string sizes;
  for (ssize_t size; (size = read(stream.reader, data, sizeof data)) > 0;)
    sizes += " " + std::to_string(size);
  say("reads:" + sizes);
  wait(nullptr);
}

}  // namespace rocemu::determinism
