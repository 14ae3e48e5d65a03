// Tests rdma_bind_addr(3), rdma_set_option(3) RDMA_OPTION_ID_REUSEADDR and rdma_listen(3): which id
// gets a port, and which scopes are valid for link-local addresses, as in Linux's rdma_cm.
#include <net/if.h>

#include "tests/system/rdmacm_fixture.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class Ports : public testing::Test {
 protected:
  ~Ports() override {
    for (rdma_cm_id* id : ids_) EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  rdma_cm_id* make_id(bool reuse) {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP), 0);
    ids_.push_back(id);
    int on = 1;
    if (reuse) {
      EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
    }
    return id;
  }
  /// Binds the id to 127.0.0.1, and returns 0 or errno.
  static int bind(rdma_cm_id* id, uint16_t big_endian_port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = big_endian_port;
    return rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0 ? 0 : errno;
  }
  static int bind(rdma_cm_id* id, const ibv_gid& gid, uint32_t scope) {
    sockaddr_in6 address = socket_address(gid, scope);
    return rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0 ? 0 : errno;
  }
  static sockaddr_in6 socket_address(const ibv_gid& gid, uint32_t scope) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    std::memcpy(&address.sin6_addr, gid.raw, sizeof gid.raw);
    address.sin6_scope_id = scope;
    return address;
  }
  static int listen(rdma_cm_id* id) { return rdma_listen(id, 4) == 0 ? 0 : errno; }

 private:
  EventChannel channel_;
  std::vector<rdma_cm_id*> ids_;
};

TEST_F(Ports, APortWithAListenerIsNotShared) {
  rdma_cm_id* first = make_id(true);
  ASSERT_EQ(bind(first, 0), 0);
  const uint16_t port = rdma_get_src_port(first);
  rdma_cm_id* second = make_id(true);
  ASSERT_EQ(bind(second, port), 0);
  EXPECT_EQ(bind(make_id(false), port), EADDRINUSE);
  EXPECT_EQ(listen(first), EADDRINUSE);
  rdma_cm_id* alone = make_id(true);
  ASSERT_EQ(bind(alone, 0), 0);
  ASSERT_EQ(listen(alone), 0);
  EXPECT_EQ(bind(make_id(true), rdma_get_src_port(alone)), EADDRINUSE);
  EXPECT_EQ(bind(make_id(false), rdma_get_src_port(alone)), EADDRINUSE);
}

TEST_F(Ports, ALinkLocalAddressHasTheScopeOfItsInterface) {
  // Only the second of the default devices has a link-local address.
  const ContextPtr context = open_device(1);
  ibv_gid_entry entry{};
  for (uint32_t i = 0; ibv_query_gid_ex(context.get(), 1, i, &entry, 0) == 0; ++i) {
    if (entry.gid.raw[0] == 0xfe) break;
  }
  ASSERT_EQ(entry.gid.raw[0], 0xfe);
  constexpr uint32_t kNoInterface = 0x7ffffff0;
  EXPECT_EQ(bind(make_id(false), entry.gid, entry.ndev_ifindex), 0);
  EXPECT_EQ(bind(make_id(false), entry.gid, 0), EINVAL);
  EXPECT_EQ(bind(make_id(false), entry.gid, kNoInterface), ENODEV);
  sockaddr_in6 there = socket_address(entry.gid, kNoInterface);
  errno = 0;
  EXPECT_EQ(rdma_resolve_addr(make_id(false), nullptr, reinterpret_cast<sockaddr*>(&there), 1000),
            -1);
  EXPECT_EQ(errno, ENETUNREACH);
}

}  // namespace
}  // namespace rocemu::system_test
