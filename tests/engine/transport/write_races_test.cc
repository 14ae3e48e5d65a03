// Tests WRITEs of two QPs to the same bytes. IBTA vol 1, 9.5, orders only the requests of one QP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using abi::WrOpcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WriteRacesTest : public ::testing::Test {
 protected:
  WriteRacesTest() {
    second = another(pair.left);
    const uint32_t target = another(pair.right);
    connect(pair.left, second, wire::IpAddress::from_v4(10, 0, 0, 2), target);
    connect(pair.right, target, wire::IpAddress::from_v4(10, 0, 0, 1), second);
    pair.bench.engine().watch_write_races();
  }

  /// Posts a request for `length` bytes of the right side's buffer, from `offset` on.
  void post(uint32_t qp, uint64_t offset, uint32_t length, WrOpcode opcode = WrOpcode::kRdmaWrite) {
    pair.left.client.post_send(qp, {.opcode = opcode,
                                    .sges = {pair.left.send_sge(length)},
                                    .remote_address = Endpoint::kRecvBuffer + offset,
                                    .rkey = pair.right.recv_mr.rkey});
  }

  struct Race {
    uint32_t qp, other;
    uint64_t offset, length;
    bool operator==(const Race&) const = default;
  };
  std::vector<Race> races() const {
    std::vector<Race> found;
    for (const engine::Misuse& misuse : pair.bench.misuses)
      if (const auto* race = std::get_if<engine::WritesUnordered>(&misuse))
        found.push_back({race->qp.value, race->other.value, race->address - Endpoint::kRecvBuffer,
                         race->length});
    return found;
  }

  static EndpointOptions open_to_all() {
    EndpointOptions options;
    options.recv_access = options.connection.access =
        abi::kAccessLocalWrite | abi::kAccessRemoteWrite | abi::kAccessRemoteRead |
        abi::kAccessRemoteAtomic;
    return options;
  }
  static PairOptions far_apart() {
    PairOptions options;
    options.left = options.right = open_to_all();
    options.link_latency = 10us;
    return options;
  }

  Pair pair{far_apart()};
  uint32_t first = pair.left.qpn, second = 0;

 private:
  static uint32_t another(Endpoint& side) {
    return side.client.create_qp({.pd = side.pd,
                                  .send_cq = side.send_cq,
                                  .recv_cq = side.recv_cq,
                                  .cap = EndpointOptions().cap});
  }
  static void connect(Endpoint& side, uint32_t qp, const wire::IpAddress& to, uint32_t peer) {
    EXPECT_TRUE(bring_up(side.client, qp, abi::QpState::kRts, open_to_all().connection,
                         address_vector(to), peer));
  }
};

TEST_F(WriteRacesTest, AreWritesThatAreUnderWayTogether) {
  post(first, 0, 16);
  post(second, 12, 16);
  EXPECT_THAT(races(), ElementsAre(Race{second, first, 12, 4}));
}

TEST_F(WriteRacesTest, AreNoneOnceTheFirstIsExecuted) {
  post(first, 0, 16);
  // the WRITE is executed and its acknowledgement is on the way, so the right side may have seen
  // the data
  pair.bench.advance_to(10us);
  post(second, 0, 16);
  EXPECT_THAT(races(), IsEmpty());
}

TEST_F(WriteRacesTest, AreFoundWhileTheFirstIsExecutedInPart) {
  constexpr uint32_t kThreePackets = 3 * 1024;
  post(first, 0, kThreePackets);
  post(second, kThreePackets - 1, 1);
  EXPECT_THAT(races(), ElementsAre(Race{second, first, kThreePackets - 1, 1}));
}

TEST_F(WriteRacesTest, AreNoneToDisjointBytes) {
  post(first, 0, 16);
  post(second, 16, 16);
  EXPECT_THAT(races(), IsEmpty());
}

TEST_F(WriteRacesTest, AreNoneOfOneQp) {
  post(first, 0, 16);
  post(first, 0, 16);
  EXPECT_THAT(races(), IsEmpty());
}

TEST_F(WriteRacesTest, AreNoneOfReadsAndAtomics) {
  for (const WrOpcode opcode : {WrOpcode::kRdmaRead, WrOpcode::kAtomicFetchAndAdd}) {
    post(first, 0, 8, opcode);
    post(second, 0, 8, opcode);
  }
  EXPECT_THAT(races(), IsEmpty());
}

TEST_F(WriteRacesTest, AreNoneBehindAResetOfTheFirst) {
  post(first, 0, 16);
  const Transition reset = transition_to(abi::QpState::kReset, {}, {}, 0);
  EXPECT_EQ(pair.left.client.modify_qp(first, reset.attr, reset.mask), 0);
  post(second, 0, 16);
  EXPECT_THAT(races(), IsEmpty());
}

TEST_F(WriteRacesTest, AreFoundWithAFirstThatWaitsInItsQueue) {
  pair.left.client.post_send(first, {.sges = {pair.left.send_sge(8)}});  // meets no receive
  post(first, 0, 16);
  pair.bench.advance_to(1ms);
  post(second, 0, 16);
  EXPECT_THAT(races(), ElementsAre(Race{second, first, 0, 16}));
}

}  // namespace
}  // namespace rocemu::test
