#include "emulator/command/hangs/told_waits.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/abi/runtime_dir.h"
#include "emulator/abi/turn_table.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

/// Receives the daemon's reply, which contains two descriptors. Returns the first one, which refers
/// to the table of turns.
UniqueFd receive_table(int socket) {
  abi::TurnsReply reply{};
  iovec part{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof reply) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return {};
  int fds[2];
  std::memcpy(fds, CMSG_DATA(header), sizeof fds);
  const UniqueFd unused(fds[1]);
  return UniqueFd(fds[0]);
}

}  // namespace

std::optional<TurnTableView> TurnTableView::open(const std::string& dir) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir + "/" + abi::kTurnsSocket;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::nullopt;
  }
  const timeval at_most{5, 0};  // a daemon that does not reply publishes no waits
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &at_most, sizeof at_most);
  const abi::TurnsHello hello{abi::kTurnsMagic, abi::kTurnsVersion, abi::TurnsHello::kObserver, 0,
                              0};
  if (send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return std::nullopt;
  const UniqueFd file = receive_table(socket.get());
  if (!file) return std::nullopt;
  void* const memory = mmap(nullptr, sizeof(abi::TurnTable), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return std::nullopt;
  return TurnTableView(static_cast<const abi::TurnTable*>(memory));
}

TurnTableView::TurnTableView(TurnTableView&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)) {}

TurnTableView& TurnTableView::operator=(TurnTableView&& other) noexcept {
  std::swap(table_, other.table_);
  return *this;
}

TurnTableView::~TurnTableView() {
  if (table_ != nullptr) munmap(const_cast<abi::TurnTable*>(table_), sizeof *table_);
}

ToldWaits TurnTableView::waits() const {
  ToldWaits waits;
  const uint32_t count = std::min(table_->high_water.load(), abi::TurnTable::kSlots);
  for (uint32_t i = 0; i < count; ++i) {
    const abi::ThreadSlot& slot = table_->slots[i];
    if (slot.state.load() != abi::ThreadSlot::kWaits) continue;
    ToldWait wait{.call = static_cast<long>(slot.call.load())};
    for (size_t k = 0; k < wait.arguments.size(); ++k) wait.arguments[k] = slot.arguments[k].load();
    wait.polls = (slot.flags.load() & abi::ThreadSlot::kPolls) != 0;
    waits.emplace(slot.tid.load(), wait);
  }
  return waits;
}

}  // namespace rocemu::command
