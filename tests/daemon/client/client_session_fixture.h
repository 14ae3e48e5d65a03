// A client that is connected to a ClientSession, whose engine accepts every request.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/daemon/client/client_session.h"
#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {

using abi::Op;
using testing::ElementsAre;
using testing::HasSubstr;

inline constexpr engine::Duration kNow{0};

class Owner : public SessionOwner {
 public:
  void wake(ClientSession&) override { ++wakes; }
  void ended(ClientSession&) override { ++ends; }
  ClientSession* find_by_client_end(const FileId& client_end) override {
    return client_end == other_client_end ? other : nullptr;
  }
  FileId other_client_end{};
  ClientSession* other = nullptr;
  int wakes = 0;
  int ends = 0;
};

struct Received {
  abi::Reply reply;
  std::vector<UniqueFd> fds;
};

class ClientSessionTest : public testing::Test {
 protected:
  ClientSessionTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket = UniqueFd(ends[0]);
    session = std::make_unique<ClientSession>(
        ClientSession::Services{engine, loop, memory, owner, clock}, engine::ClientId{1},
        engine::DeviceIndex{0}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
  }

  static abi::Request request(Op op) {
    abi::Request made{};
    made.magic = abi::kMagic;
    made.version = abi::kVersion;
    made.op = op;
    made.sequence = 77;
    return made;
  }
  void send(const void* data, size_t size, std::vector<int> fds = {}) {
    ASSERT_EQ(send_message(socket.get(), {static_cast<const std::byte*>(data), size}, fds),
              SendStatus::kOk);
    loop.wait(kNow);
  }
  /// Sends the message with `count` copies of the descriptor. `count` may exceed the number of
  /// descriptors that send_message() can send.
  void send_many(abi::Request asked, int fd, size_t count) {
    const std::vector<int> fds(count, fd);
    const size_t size = count * sizeof(int);
    std::vector<cmsghdr> control(CMSG_SPACE(size) / sizeof(cmsghdr) + 1);
    iovec data{&asked, sizeof asked};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(part), fds.data(), size);
    ASSERT_GT(sendmsg(socket.get(), &header, MSG_NOSIGNAL), 0);
    loop.wait(kNow);
  }
  std::optional<Received> receive() {
    Received answer{};
    Message message =
        receive_message(socket.get(), std::as_writable_bytes(std::span(&answer.reply, 1)));
    if (message.status != Message::Status::kOk) return std::nullopt;
    EXPECT_EQ(message.size, sizeof answer.reply);
    answer.fds = std::move(message.fds);
    return answer;
  }
  Received ask(const abi::Request& asked, std::vector<int> fds = {}) {
    send(&asked, sizeof asked, std::move(fds));
    std::optional<Received> answer = receive();
    if (!answer) {
      ADD_FAILURE() << "no answer; ended: " << session->end_reason();
      return {};
    }
    EXPECT_EQ(answer->reply.op, asked.op);
    EXPECT_EQ(answer->reply.sequence, 77u);
    return std::move(*answer);
  }
  Received hello() {
    const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    return ask(request(Op::kHello), {socket.get(), mem_file.get()});
  }
  std::string ended_because() {
    EXPECT_EQ(owner.ends, session->has_ended() ? 1 : 0);
    return session->has_ended() ? session->end_reason() : "not ended";
  }
  /// Returns how many descriptors of this process refer to the same file as `fd`. (Other threads
  /// may still be closing descriptors that earlier tests sent, but those refer to other files.)
  static long descriptors_of(int fd) {
    struct stat wanted {};
    EXPECT_EQ(fstat(fd, &wanted), 0);
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::count_if(begin(all), end(all), [&](const auto& one) {
      struct stat status {};
      return stat(one.path().c_str(), &status) == 0 && status.st_dev == wanted.st_dev &&
             status.st_ino == wanted.st_ino;
    });
  }

  const Clock clock;
  EventLoop loop;
  RecordingEngine engine;
  ProcessMemory memory;
  Owner owner;
  UniqueFd socket;
  std::unique_ptr<ClientSession> session;
};

}  // namespace rocemu::daemon
