// Tests the kind of peer that a socket without a connection waits for.
#include "emulator/os/threads/socket_peers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

std::string awaited_by(const UniqueFd& fd) {
  struct stat file {};
  EXPECT_EQ(fstat(fd.get(), &file), 0);
  return awaited_peer(getpid(), file.st_ino);
}

/// Returns a socket with an address that the kernel chooses.
UniqueFd bound(int family, int type) {
  UniqueFd fd(socket(family, type | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // For unix sockets, the kernel chooses a separate abstract name for each (unix(7)).
  const socklen_t size = family == AF_UNIX ? sizeof(sa_family_t) : sizeof(sockaddr_in);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

UniqueFd listening(int family) {
  UniqueFd fd = bound(family, SOCK_STREAM);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  return fd;
}

UniqueFd connected_to(const UniqueFd& other, int family) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

class SocketPeers : public testing::TestWithParam<int> {};

TEST_P(SocketPeers, AreAwaitedAsConnectionsByASocketThatListens) {
  EXPECT_EQ(awaited_by(listening(GetParam())), "a connection");
}

TEST_P(SocketPeers, AreAwaitedAsDatagramsByASocketOfDatagrams) {
  EXPECT_EQ(awaited_by(bound(GetParam(), SOCK_DGRAM)), "a datagram");
}

TEST_P(SocketPeers, AreAwaitedToAcceptAConnectionThatIsQueued) {
  const UniqueFd server = listening(GetParam());
  const UniqueFd client = connected_to(server, GetParam());
  EXPECT_EQ(awaited_by(client), "the acceptance of its connection");
}

INSTANTIATE_TEST_SUITE_P(Of, SocketPeers, testing::Values(AF_INET, AF_UNIX), [](const auto& one) {
  return std::string(one.param == AF_INET ? "Internet" : "Unix");
});

TEST(TcpPeers, AreNotAwaitedByAConnectionThatWasAccepted) {
  const UniqueFd server = listening(AF_INET);
  const UniqueFd client = connected_to(server, AF_INET);
  const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(awaited_by(client), "");
}

TEST(OtherSockets, HaveNoAwaitedPeer) {
  EXPECT_EQ(awaited_by(UniqueFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0))), "");
}

}  // namespace
}  // namespace rocemu
