// Tests control messages with any contents: huge counts, handles of other clients and unused
// handles, states and types that do not exist. Each message is answered, and no other client is
// affected.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/engine/base/random.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::Op;
using engine::ClientId;
using engine::DeviceIndex;

class HostileRequests : public testing::TestWithParam<uint64_t> {
 protected:
  /// Returns a small number, which can be a handle of some client, or a number at the limits of
  /// arithmetic.
  uint32_t word() {
    constexpr uint32_t kEdges[] = {0xffff'ffff, 0x8000'0000, 0x7fff'ffff, 0x00ff'ffff, 0x0100'0000,
                                   1u << 20,    1u << 22,    4096,        17,          33};
    const uint64_t choice = random.next();
    if (choice % 8 == 0) return static_cast<uint32_t>(random.next());
    if (choice % 4 == 0) return kEdges[random.next() % std::size(kEdges)];
    return static_cast<uint32_t>(random.next() % 24);
  }
  abi::Request::Body body() {
    abi::Request::Body made;
    uint32_t words[sizeof made / sizeof(uint32_t)];
    for (uint32_t& one : words) one = word();
    std::memcpy(&made, words, sizeof made);
    return made;
  }
  void exchange(Pair& pair) {
    pair.right.client.post_recv(pair.right.qpn, {.wr_id = 7, .sges = {pair.right.recv_sge(1000)}});
    pair.left.client.post_send(pair.left.qpn, {.wr_id = 8, .sges = {pair.left.send_sge(1000)}});
    const auto received = pair.take_right();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
    EXPECT_EQ(pair.take_left().size(), 1u);
  }

  engine::Random random{GetParam()};
};

TEST_P(HostileRequests, AreAnsweredWithoutEffectOnOthers) {
  constexpr auto kFirst = static_cast<uint32_t>(Op::kQueryDevice);
  constexpr auto kBeyondLast = static_cast<uint32_t>(abi::kLastOp) + 3;
  Pair pair;
  Client hostile(pair.bench, ClientId{77}, DeviceIndex{0});
  pair.bench.memory.map(hostile.id(), 0x1000, 1 << 16);
  const uint32_t pd = hostile.alloc_pd();
  const uint32_t cq = hostile.create_cq(16);
  hostile.create_qp(pd, cq, cq, {4, 4, 1, 1, 0});
  uint32_t succeeded = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto op = static_cast<Op>(kFirst + random.next() % (kBeyondLast - kFirst));
    const abi::Reply reply = hostile.command(op, body());
    ASSERT_GE(reply.error, 0);
    succeeded += reply.error == 0;
    if (i % 500 == 0) exchange(pair);
  }
  EXPECT_GT(succeeded, 100u) << "most were refused at the door, which tests nothing";
  exchange(pair);
  pair.bench.detach(hostile.id());
  exchange(pair);
  const engine::FabricSnapshot left = pair.bench.engine().snapshot();
  for (const engine::DeviceSnapshot& device : left.devices) {
    EXPECT_EQ(device.qps.size(), 1u);
    EXPECT_EQ(device.cqs.size(), 2u);
    EXPECT_EQ(device.pds.size(), 1u);
    EXPECT_EQ(device.mws.size() + device.srqs.size() + device.ah_count + device.xrcds.size(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileRequests, testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace rocemu::test
