// Tests what happens to threads that wait for a turn when the daemon ends.
#include "emulator/daemon/run/turns.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "emulator/daemon/base/unix_socket.h"
#include "tests/daemon/temp_dir.h"

namespace rocemu::daemon {
namespace {

using abi::ThreadSlot;

/// A connection of this process, as the provider library makes it.
class Participant {
 public:
  Participant(const std::string& path, Turns& turns)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const abi::TurnsHello hello{.magic = abi::kTurnsMagic,
                                .version = abi::kTurnsVersion,
                                .slot = abi::TurnsHello::kNoSlot,
                                .tid = gettid(),
                                .serial = 0};
    EXPECT_EQ(send(socket_.get(), &hello, sizeof hello, 0), ssize_t{sizeof hello});
    alignas(8) std::byte buffer[sizeof(abi::TurnsReply)];
    Message message = receive_message(socket_.get(), buffer);
    while (message.status == Message::Status::kNothing) {
      turns.look_whether_command_ended();  // serves the connection
      message = receive_message(socket_.get(), buffer);
    }
    abi::TurnsReply reply{};
    std::memcpy(&reply, buffer, sizeof reply);
    void* const memory = mmap(nullptr, sizeof(abi::TurnTable), PROT_READ | PROT_WRITE, MAP_SHARED,
                              message.fds.at(0).get(), 0);
    EXPECT_NE(memory, MAP_FAILED);
    table_ = static_cast<abi::TurnTable*>(memory);
    slot_ = &table_->slots[reply.slot];
  }
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;
  ~Participant() { munmap(table_, sizeof *table_); }

  ThreadSlot& slot() { return *slot_; }
  bool is_daemon_gone() const {
    pollfd entry{socket_.get(), 0, 0};
    return poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
  }

 private:
  UniqueFd socket_;
  abi::TurnTable* table_ = nullptr;
  ThreadSlot* slot_ = nullptr;
};

/// A thread that waits for a change of the word without a time limit.
class Waiter {
 public:
  Waiter(std::atomic<uint32_t>& word, const Participant& participant)
      : thread_([&word, &participant, this] {
          tid_ = gettid();
          result_ = syscall(SYS_futex, &word, FUTEX_WAIT, word.load(), nullptr, nullptr, 0);
          knows_end_ = participant.is_daemon_gone();
        }) {
    const std::string futex = std::to_string(SYS_futex) + " ";
    for (std::string call; !call.starts_with(futex); std::this_thread::yield()) {
      std::ifstream file("/proc/self/task/" + std::to_string(tid_.load()) + "/syscall");
      std::getline(file, call);
    }
  }
  void expect_woken_by_end() {
    thread_.join();
    EXPECT_EQ(result_, 0);
    EXPECT_TRUE(knows_end_);
  }

 private:
  std::atomic<pid_t> tid_ = 0;
  long result_ = -1;
  bool knows_end_ = false;
  std::thread thread_;
};

TEST(Turns, WakeWaitingThreadsWhenTheyEnd) {
  TempDir dir;
  const UniqueFd requests(eventfd(0, EFD_CLOEXEC));
  std::optional<Turns> turns;
  turns.emplace(
      Turns::Options{}, listen_at(dir / "turns", SOCK_SEQPACKET),
      Turns::Requests{
          .fd = requests.get(), .serve = [] {}, .clients = [] { return std::vector<pid_t>(); }});
  Participant participant(dir / "turns", *turns);
  EXPECT_FALSE(participant.is_daemon_gone());
  Waiter for_turn(participant.slot().turn, participant);
  Waiter for_reply(participant.slot().asks, participant);
  turns.reset();
  for_turn.expect_woken_by_end();
  for_reply.expect_woken_by_end();
}

}  // namespace
}  // namespace rocemu::daemon
