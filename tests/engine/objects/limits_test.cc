// Tests the limits of ibv_query_device(3): exactly that number of objects can exist, and after one
// is destroyed, another can be created.
#include "emulator/engine/base/limits.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/endpoint.h"

namespace rocemu::test {
namespace {

using engine::ClientId;
using engine::DeviceIndex;

class Limits : public testing::Test {
 protected:
  /// Checks that `limit` objects can exist. `create` and `destroy` return the errno of their
  /// command.
  template <class Create, class Destroy>
  void expect_limit(uint64_t limit, Create create, Destroy destroy) {
    for (uint64_t i = 0; i < limit; ++i) ASSERT_EQ(create(), 0) << "object " << i;
    EXPECT_EQ(create(), ENOMEM);
    EXPECT_EQ(destroy(), 0);
    EXPECT_EQ(create(), 0);
    EXPECT_EQ(create(), ENOMEM);
  }
  abi::DeviceAttr told() { return client.command(abi::Op::kQueryDevice, {}).body.device; }

  Bench bench{engine::default_fabric(1)};
  Client client{bench, ClientId{1}, DeviceIndex{0}};
  uint32_t last = 0;
};

TEST_F(Limits, OfProtectionDomains) {
  expect_limit(
      told().max_pd,
      [&] {
        const uint32_t made = client.alloc_pd();
        if (client.error == 0) last = made;
        return client.error;
      },
      [&] { return client.dealloc_pd(last); });
}

TEST_F(Limits, OfAddressHandles) {
  const uint32_t pd = client.alloc_pd();
  const abi::AhAttr address = address_vector(wire::IpAddress::from_v4(127, 0, 0, 1));
  expect_limit(
      told().max_ah,
      [&] {
        const uint32_t made = client.create_ah(pd, address);
        if (client.error == 0) last = made;
        return client.error;
      },
      [&] { return client.destroy_ah(last); });
}

TEST_F(Limits, OfMemoryRegionsAndWindows) {
  bench.memory.map(client.id(), 0x1000, 64);
  const uint32_t pd = client.alloc_pd();
  expect_limit(
      told().max_mr,
      [&] {
        const Mr made = client.reg_mr(pd, 0x1000, 64);
        if (client.error == 0) last = made.handle;
        return client.error;
      },
      [&] { return client.dereg_mr(last); });
  expect_limit(
      told().max_mw,
      [&] {
        const Mw made = client.alloc_mw(pd, abi::MwType::k1);
        if (client.error == 0) last = made.handle;
        return client.error;
      },
      [&] { return client.dealloc_mw(last); });
}

// The number of device memories is limited; with 4 bytes each, their size does not matter.
TEST_F(Limits, OfDeviceMemories) {
  expect_limit(
      engine::kMaxDms,
      [&] {
        const uint32_t made = client.alloc_dm(4);
        if (client.error == 0) last = made;
        return client.error;
      },
      [&] { return client.free_dm(last); });
}

}  // namespace
}  // namespace rocemu::test
