// A client of a running daemon, which speaks the control protocol and uses the rings.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

inline UniqueFd connect_to(const std::string& path, int type) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), kMaxSocketPath);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << path;
  return fd;
}

inline std::string ask_control(const std::string& path, const std::string& line) {
  const UniqueFd fd = connect_to(path, SOCK_STREAM);
  EXPECT_EQ(send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(line.size()));
  std::string answer;
  char buffer[4096];
  while (!answer.ends_with('\n')) {
    const ssize_t size = recv(fd.get(), buffer, sizeof buffer, 0);
    if (size <= 0) break;
    answer.append(buffer, static_cast<size_t>(size));
  }
  return answer;
}

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const UniqueFd& file, uint64_t size)
      : data_(static_cast<std::byte*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0))),
        size_(size) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

class TestClient {
 public:
  explicit TestClient(const std::string& device) : socket_(connect_to(device, SOCK_SEQPACKET)) {
    const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    const abi::Reply hello = ask(request(abi::Op::kHello), {socket_.get(), mem_file.get()});
    EXPECT_EQ(hello.error, 0);
    segments_.emplace(0, MappedFile(take_fd(0), hello.body.hello.segment_size));
    doorbells_ = reinterpret_cast<abi::DoorbellRing*>(at(hello.body.hello.doorbells));
    doorbell_ = take_fd(1);
    async_ = take_fd(2);
  }

  static abi::Request request(abi::Op op) {
    abi::Request made{};
    made.magic = abi::kMagic;
    made.version = abi::kVersion;
    made.op = op;
    return made;
  }
  abi::Reply ask(abi::Op op) { return ask(request(op)); }
  abi::Reply ask(const abi::Request& asked, std::vector<int> fds = {}) {
    EXPECT_EQ(send_message(socket_.get(), std::as_bytes(std::span(&asked, 1)), fds),
              SendStatus::kOk);
    abi::Reply reply{};
    Message message{Message::Status::kNothing, 0, {}};
    while (message.status == Message::Status::kNothing) {
      message = receive_message(socket_.get(), std::as_writable_bytes(std::span(&reply, 1)));
    }
    EXPECT_EQ(message.status, Message::Status::kOk);
    fds_ = std::move(message.fds);
    return reply;
  }
  /// Returns the n-th descriptor of the last reply.
  UniqueFd take_fd(size_t n) { return n < fds_.size() ? std::move(fds_[n]) : UniqueFd(); }

  /// Returns memory that the daemon shares with the client.
  std::byte* at(const abi::SharedRange& range) {
    if (!segments_.contains(range.segment)) {
      abi::Request open = request(abi::Op::kOpenSegment);
      open.body.open_segment.segment = range.segment;
      const abi::Reply reply = ask(open);
      EXPECT_EQ(reply.error, 0);
      segments_.emplace(range.segment, MappedFile(take_fd(0), reply.body.open_segment.size));
    }
    return segments_.at(range.segment).data() + range.offset;
  }
  abi::DoorbellRing& doorbells() { return *doorbells_; }
  void ring(abi::DoorbellKind kind, uint32_t object, uint64_t value) {
    auto& ring = doorbells();
    const uint32_t n = ring.producer.load(std::memory_order_relaxed);
    ring.entries[n % abi::kDoorbellEntries] = {kind, object, value};
    ring.producer.store(n + 1, std::memory_order_seq_cst);
    if (ring.daemon_sleeping.load(std::memory_order_seq_cst) != 0)
      eventfd_write(doorbell_.get(), 1);
  }
  /// Returns whether the daemon ends the connection. Blocks until the connection ends or, wrongly,
  /// a message arrives.
  bool is_ended() {
    char byte;
    return recv(socket_.get(), &byte, 1, 0) <= 0;
  }

 private:
  UniqueFd socket_;
  std::vector<UniqueFd> fds_;
  std::map<uint32_t, MappedFile> segments_;
  abi::DoorbellRing* doorbells_ = nullptr;
  UniqueFd doorbell_;
  UniqueFd async_;
};

}  // namespace rocemu::daemon
