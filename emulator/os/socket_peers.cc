#include "emulator/os/socket_peers.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
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

std::optional<uint64_t> peer_of_tcp_socket(pid_t process, uint64_t inode) {
  struct Row {
    std::string local, remote;
    uint64_t inode;
  };
  std::vector<Row> rows;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::istringstream lines(proc::contents_of(proc::directory_of(process) + table));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, word;
      words >> slot >> local >> remote;
      for (int i = 0; i < 6; ++i) words >> word;  // state, queues, timer, retransmits, uid, timeout
      Row row{local, remote, 0};
      words >> row.inode;
      rows.push_back(row);
    }
  }
  const auto own = std::ranges::find(rows, inode, &Row::inode);
  if (own == rows.end()) return std::nullopt;
  for (const Row& row : rows) {
    if (row.local == own->remote && row.remote == own->local && row.inode != 0) return row.inode;
  }
  return std::nullopt;
}

}  // namespace rocemu
