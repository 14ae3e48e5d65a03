#include "emulator/os/threads/socket_peers.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/os/proc.h"
#include "emulator/os/unique_fd.h"

namespace rocemu {

std::map<uint64_t, uint64_t> peers_of_unix_sockets() {
  std::map<uint64_t, uint64_t> peers;
  const UniqueFd netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return peers;
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = AF_UNIX;
  message.request.udiag_states = ~0u;
  message.request.udiag_show = UDIAG_SHOW_PEER;
  if (send(netlink.get(), &message, sizeof message, 0) < 0) return peers;
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (;;) {
    const ssize_t received = recv(netlink.get(), buffer.data(), buffer.size(), 0);
    if (received <= 0) return peers;
    auto size = static_cast<unsigned>(received);
    for (auto* at = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(at, size);
         at = NLMSG_NEXT(at, size)) {
      if (at->nlmsg_type == NLMSG_DONE || at->nlmsg_type == NLMSG_ERROR) return peers;
      const auto* one = static_cast<const unix_diag_msg*>(NLMSG_DATA(at));
      auto left = static_cast<unsigned>(NLMSG_PAYLOAD(at, sizeof *one));
      for (auto* attribute = reinterpret_cast<const rtattr*>(one + 1); RTA_OK(attribute, left);
           attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type != UNIX_DIAG_PEER) continue;
        uint32_t peer;
        std::memcpy(&peer, RTA_DATA(attribute), sizeof peer);
        peers[one->udiag_ino] = peer;
      }
    }
  }
}

namespace {

/// One line of /proc/net/tcp, or of another table with the same format.
struct InternetSocket {
  std::string local, remote, state;
  uint64_t inode = 0;
};

std::vector<InternetSocket> internet_sockets(pid_t process,
                                             std::initializer_list<const char*> tables) {
  std::vector<InternetSocket> rows;
  for (const char* table : tables) {
    std::istringstream lines(proc::contents_of(proc::directory_of(process) + "/net/" + table));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      InternetSocket row;
      std::string slot, word;
      words >> slot >> row.local >> row.remote >> row.state;
      for (int i = 0; i < 5; ++i) words >> word;  // queues, timer, retransmits, uid, timeout
      words >> row.inode;
      rows.push_back(row);
    }
  }
  return rows;
}

bool are_ends_of_one(const InternetSocket& one, const InternetSocket& other) {
  return one.local == other.remote && one.remote == other.local;
}

/// The states of TCP sockets in /proc/net/tcp (Linux, include/net/tcp_states.h).
constexpr const char *kEstablished = "01", *kListens = "0A";

std::string awaited_tcp_peer(pid_t process, uint64_t inode) {
  const std::vector<InternetSocket> rows = internet_sockets(process, {"tcp", "tcp6"});
  const auto own = std::ranges::find(rows, inode, &InternetSocket::inode);
  if (own == rows.end()) return "";
  if (own->state == kListens) return "a connection";
  // An established socket without an inode has not been accepted yet: it is in the queue of a
  // listening socket.
  const bool is_queued = std::ranges::any_of(rows, [&](const InternetSocket& row) {
    return are_ends_of_one(row, *own) && row.inode == 0 && row.state == kEstablished;
  });
  return is_queued ? "the acceptance of its connection" : "";
}

/// Returns what a Unix socket without a peer waits for. The columns of /proc/net/unix are "Num
/// RefCount Protocol Flags Type St Inode Path" (proc(5)).
std::string awaited_unix_peer(pid_t process, uint64_t inode) {
  constexpr unsigned long kAccepts = 1UL << 16, kDatagrams = 2;  // __SO_ACCEPTCON, SOCK_DGRAM
  std::istringstream lines(proc::contents_of(proc::directory_of(process) + "/net/unix"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state;
    uint64_t own = 0;
    words >> number >> references >> protocol >> flags >> type >> state >> own;
    if (own != inode) continue;
    if ((std::stoul(flags, nullptr, 16) & kAccepts) != 0) return "a connection";
    return std::stoul(type, nullptr, 16) == kDatagrams ? "a datagram"
                                                       : "the acceptance of its connection";
  }
  return "";
}

}  // namespace

std::string awaited_peer(pid_t process, uint64_t inode) {
  for (const InternetSocket& row :
       internet_sockets(process, {"udp", "udp6", "udplite", "udplite6", "raw", "raw6"}))
    if (row.inode == inode) return "a datagram";
  const std::string tcp = awaited_tcp_peer(process, inode);
  return tcp.empty() ? awaited_unix_peer(process, inode) : tcp;
}

std::optional<uint64_t> peer_of_tcp_socket(pid_t process, uint64_t inode) {
  const std::vector<InternetSocket> rows = internet_sockets(process, {"tcp", "tcp6"});
  const auto own = std::ranges::find(rows, inode, &InternetSocket::inode);
  if (own == rows.end()) return std::nullopt;
  for (const InternetSocket& row : rows) {
    if (are_ends_of_one(row, *own) && row.inode != 0) return row.inode;
  }
  return std::nullopt;
}

}  // namespace rocemu
