// Tests what the classes of `--adversarial` may change, and the guarantees that they must keep
// (IBTA vol 1, 9.5 and o9-20; ibv_reg_mr(3)). Most tests check the guarantees after each step, for
// many seeds.
#include "emulator/engine/adversarial/adversary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WrOpcode;
using engine::adversarial::Class;
using engine::adversarial::Classes;

constexpr uint64_t kSeeds = 64;
/// The time after which all bytes are written: a byte is written at most twice kLongest after its
/// message arrives, since the message before it can be equally late.
constexpr auto kEnough = 5ms;
constexpr uint32_t kAccess =
    abi::kAccessRemoteWrite | abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

uint32_t bits_of(std::initializer_list<Class> list) {
  Classes classes;
  for (const Class one : list) classes.add(one);
  return classes.bits();
}

engine::FabricConfig adversarial_fabric(uint32_t classes, uint64_t seed) {
  engine::FabricConfig fabric = engine::default_fabric(2);
  fabric.adversarial = classes;
  fabric.seed = seed;
  return fabric;
}

EndpointOptions open_for_all(uint32_t access) {
  EndpointOptions options;
  options.connection.access = kAccess;
  options.connection.max_rd_atomic = 4;
  options.recv_access = abi::kAccessLocalWrite | kAccess | access;
  return options;
}

struct Adversarial {
  Adversarial(uint32_t classes, uint64_t seed, uint32_t access = 0,
              const Connection& connection = open_for_all(0).connection)
      : bench(adversarial_fabric(classes, seed)),
        left(bench, engine::ClientId{1}, engine::DeviceIndex{0}, open_for_all(0)),
        right(bench, engine::ClientId{2}, engine::DeviceIndex{1}, open_for_all(access)) {
    const auto& devices = engine::default_fabric(2).devices;
    EXPECT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, connection,
                         address_vector(devices[1].addresses[0]), right.qpn));
    EXPECT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, connection,
                         address_vector(devices[0].addresses[0]), left.qpn));
  }

  /// Posts a WRITE of `length` bytes, all with the value `value`.
  void write(uint8_t value, uint32_t length, uint64_t to, WrOpcode opcode = WrOpcode::kRdmaWrite) {
    left.fill_send_buffer(std::vector<uint8_t>(length, value), at_);
    left.post_send({.opcode = opcode,
                    .sges = {left.send_sge(length, at_)},
                    .remote_address = Endpoint::kRecvBuffer + to,
                    .rkey = right.recv_mr.rkey});
    at_ += length;
  }
  void fetch_add(uint64_t to, uint64_t value) {
    left.post_send({.opcode = WrOpcode::kAtomicFetchAndAdd,
                    .sges = {{Endpoint::kRecvBuffer, 8, left.recv_mr.lkey}},
                    .remote_address = Endpoint::kRecvBuffer + to,
                    .rkey = right.recv_mr.rkey,
                    .compare_add = value});
  }
  uint64_t word(uint64_t at) {
    const auto bytes = right.recv_bytes(8, at);
    uint64_t value = 0;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(&value));
    return value;
  }
  /// Advances to the engine's next deadline and returns true. Returns false if there is no deadline
  /// until kEnough.
  bool go_on() {
    const auto next = bench.engine().next_deadline();
    if (!next || *next > engine::Instant(kEnough)) return false;
    bench.advance_to(std::max(*next, bench.now()).time_since_epoch());
    return true;
  }
  /// Calls `look()` at the start and after each deadline until kEnough.
  template <class Look>
  void watch(Look look) {
    do {
      look();
    } while (go_on());
    look();
  }

  Bench bench;
  Endpoint left, right;

 private:
  uint64_t at_ = 0;
};

constexpr uint64_t kOnes = 0x0101010101010101;

// o9-20: the bytes of a WRITE may be written in any order. But 8 aligned bytes are written
// together, and all bytes are finally written without any further event.
TEST(AdversarialPlacement, WordsOfAWriteComeInAnyOrderAndAllComeInTheEnd) {
  bool last_before_first = false, first_before_last = false, late = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kPlacement}), seed);
    world.write(1, 64, 0);
    late |= completions_of(world.bench.log, engine::ClientId{1}).size() == 1 && world.word(8) == 0;
    world.watch([&] {
      for (uint64_t at = 0; at < 64; at += 8) {
        ASSERT_THAT(world.word(at), testing::AnyOf(0, kOnes)) << at;
      }
      last_before_first |= world.word(56) != 0 && world.word(0) == 0;
      first_before_last |= world.word(56) == 0 && world.word(0) != 0;
    });
    EXPECT_EQ(world.right.recv_bytes(65), [] {
      std::vector<uint8_t> all(64, 1);
      all.push_back(0);
      return all;
    }());
    EXPECT_TRUE(world.bench.engine().is_idle());
  }
  EXPECT_TRUE(last_before_first);
  EXPECT_TRUE(first_before_last);
  // the requester's completion does not mean that the bytes are in the responder's memory
  EXPECT_TRUE(late);
}

// ibv_reg_mr(3): memory without relaxed ordering keeps "RDMA write-after-write message order".
TEST(AdversarialPlacement, WritesOfOneQpBecomeVisibleInTheirOrder) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kPlacement}), seed);
    for (uint8_t i = 0; i < 4; ++i) world.write(1, 128, i * 128u);
    world.watch([&] {
      for (uint32_t i = 1; i < 4; ++i) {
        const auto earlier = world.right.recv_bytes(128, 128u * (i - 1));
        const auto later = world.right.recv_bytes(128, 128u * i);
        if (std::ranges::find(later, 1) == later.end()) continue;
        ASSERT_EQ(std::ranges::find(earlier, 0), earlier.end());
      }
    });
    EXPECT_EQ(world.word(504), kOnes);
  }
}

// 9.5: a "subsequent SEND" and a WRITE with immediate data: when their completions are polled, all
// bytes of earlier WRITEs are in memory.
TEST(AdversarialPlacement, AReceiveCompletionFindsAllThatCameBeforeIt) {
  bool waited = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(Classes::all().bits(), seed);
    world.right.post_recv({.sges = {world.right.recv_sge(64, 4096)}});
    world.write(1, 1000, 0);
    world.left.fill_send_buffer(std::vector<uint8_t>(64, 2), 8192);
    world.left.post_send({.sges = {world.left.send_sge(64, 8192)}});
    bool is_complete = false;
    world.watch([&] {
      if (completions_of(world.bench.log, engine::ClientId{2}).empty()) {
        waited |= completions_of(world.bench.log, engine::ClientId{1}).size() == 2;
        return;
      }
      is_complete = true;
      ASSERT_EQ(world.right.recv_bytes(1000), std::vector<uint8_t>(1000, 1));
      ASSERT_EQ(world.right.recv_bytes(64, 4096), std::vector<uint8_t>(64, 2));
    });
    EXPECT_TRUE(is_complete);
  }
  EXPECT_TRUE(waited);
}

// A command such as ibv_dereg_mr(3) may be the end of the memory, so nothing may be written after
// it.
TEST(AdversarialPlacement, NothingIsWrittenBehindAVerb) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kPlacement}), seed);
    world.write(1, 64, 0);
    EXPECT_EQ(world.right.client.dereg_mr(world.right.recv_mr.handle), 0);
    EXPECT_EQ(world.right.recv_bytes(64), std::vector<uint8_t>(64, 1));
    EXPECT_FALSE(world.bench.engine().next_deadline());
  }
}

TEST(AdversarialPlacement, TheLastWriteOfAByteStays) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kPlacement, Class::kAtomicity}), seed);
    for (uint8_t i = 1; i <= 5; ++i) world.write(i, 40, i * 4u);
    world.watch([] {});
    for (uint8_t i = 1; i < 5; ++i) {
      EXPECT_EQ(world.right.recv_bytes(4, i * 4u), std::vector<uint8_t>(4, i));
    }
    EXPECT_EQ(world.right.recv_bytes(40, 20), std::vector<uint8_t>(40, 5));
  }
}

// ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING: "RDMA write-after-write message order is no longer
// guaranteed", and "relaxed ordered operations will also not bypass atomic operations".
TEST(AdversarialRelaxed, WritesOvertakeEachOtherOnlyInRelaxedMemoryAndNeverAnAtomic) {
  for (const uint32_t access : {0u, uint32_t{abi::kAccessRelaxedOrdering}}) {
    bool overtakes = false;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Adversarial world(bits_of({Class::kRelaxed, Class::kPlacement}), seed, access);
      world.write(1, 8, 0);
      world.write(1, 8, 8);
      // an atomic after the WRITEs makes both visible at once
      if (seed % 2 == 0) world.fetch_add(16, 1);
      world.watch([&] {
        overtakes |= world.word(8) != 0 && world.word(0) == 0;
        if (world.word(16) != 0) {
          ASSERT_EQ(world.word(0) & world.word(8), kOnes);
        }
      });
      EXPECT_EQ(world.word(0) & world.word(8), kOnes);
    }
    EXPECT_EQ(overtakes, access != 0);
  }
}

// IBV_ATOMIC_HCA: if the processor stores to a word while the NIC executes an atomic on it, the
// store is lost; the addition of another atomic is not.
TEST(AdversarialAtomicity, AStoreOfTheProcessorIsLostAndAnAtomicIsNot) {
  bool lost = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kAtomicity}), seed);
    for (int i = 0; i < 5; ++i) world.fetch_add(0, 1);
    auto bytes = world.right.memory().at(engine::ClientId{2}, Endpoint::kRecvBuffer + 6, 1);
    bytes[0] = 1;  // in the same word, but in a byte that the atomics do not change
    world.watch([] {});
    EXPECT_EQ(world.word(0) & 0xff, 5u);
    lost |= (world.word(0) >> 48 & 0xff) == 0;
  }
  EXPECT_TRUE(lost);
}

// ibv_post_send(3): the buffer belongs to the NIC until the completion.
TEST(AdversarialLateRead, ChangesBeforeTheCompletionAreSentAndInlineDataIsNot) {
  int changed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Adversarial world(bits_of({Class::kLateRead}), seed);
    world.write(1, 64, 0);
    world.left.fill_send_buffer(std::vector<uint8_t>(64, 2));
    world.left.post_send({.opcode = WrOpcode::kRdmaWrite,
                          .flags = abi::kSendSignaled | abi::kSendInline,
                          .inline_data = std::vector<uint8_t>(8, 3),
                          .remote_address = Endpoint::kRecvBuffer + 64,
                          .rkey = world.right.recv_mr.rkey});
    world.watch([] {});
    changed += world.word(0) == 2 * kOnes;
    EXPECT_THAT(world.word(0), testing::AnyOf(kOnes, 2 * kOnes));
    EXPECT_EQ(world.word(64), 3 * kOnes);
    EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{1}).size(), 2u);
  }
  EXPECT_GT(changed, static_cast<int>(kSeeds / 2));
}

// IBTA vol 1, 10.8.5: completions of one work queue are in order.
TEST(AdversarialOrder, AWorkQueueKeepsItsOrder) {
  bool late = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kOrder}), seed);
    for (uint64_t i = 0; i < 8; ++i) {
      world.right.post_recv({.wr_id = 100 + i, .sges = {world.right.recv_sge(8)}});
    }
    for (uint64_t i = 0; i < 8; ++i) {
      world.left.post_send({.wr_id = i, .sges = {world.left.send_sge(8)}});
    }
    late |= completions_of(world.bench.log, engine::ClientId{2}).size() < 8;
    world.watch([] {});
    const auto sent = completions_of(world.bench.log, engine::ClientId{1});
    const auto received = completions_of(world.bench.log, engine::ClientId{2});
    ASSERT_EQ(sent.size(), 8u);
    ASSERT_EQ(received.size(), 8u);
    for (uint64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(sent[i].wr_id, i);
      EXPECT_EQ(received[i].wr_id, 100 + i);
    }
  }
  EXPECT_TRUE(late);
}

uint64_t acknowledgements_of(const Adversarial& world) {
  return counter(world.bench.engine(), engine::Counter::kFramesOut, 1);
}

// IBTA vol 1, 9.7.5.1.2: one acknowledgement may be for several requests, and may be late, but not
// so late that the requester retransmits (9.7.6.1.3): its shortest timeout here is 4.096 us * 2^7 =
// 524 us.
TEST(AdversarialOrder, AcknowledgementsAreLateAndForSeveralMessagesAndBeforeTheTimeout) {
  constexpr uint64_t kMessages = 4;
  bool joined = false, late = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Connection connection = open_for_all(0).connection;
    connection.timeout = 7;
    Adversarial world(bits_of({Class::kOrder}), seed, 0, connection);
    for (uint64_t i = 0; i < kMessages; ++i) world.write(1, 8, 8 * i);
    late |= acknowledgements_of(world) == 0;
    world.watch([] {});
    joined |= acknowledgements_of(world) < kMessages;
    EXPECT_GE(acknowledgements_of(world), 1u);
    EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{1}).size(), kMessages);
    EXPECT_EQ(counter(world.bench.engine(), engine::Counter::kRetransmittedFrames, 0), 0u);
  }
  EXPECT_TRUE(late);
  EXPECT_TRUE(joined);
}

// IBTA vol 1, 9.7.5.1.2: the response to an atomic acknowledges the WRITE before it.
TEST(AdversarialOrder, AResponseMayStandForTheAcknowledgementBeforeIt) {
  bool alone = false, both = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kOrder}), seed);
    world.write(1, 8, 0);
    world.fetch_add(64, 1);
    world.watch([] {});
    EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{1}).size(), 2u);
    alone |= acknowledgements_of(world) == 1;
    both |= acknowledgements_of(world) == 2;
  }
  EXPECT_TRUE(alone);
  EXPECT_TRUE(both);
}

// When a responder is destroyed, it first acknowledges all messages that it received.
TEST(AdversarialOrder, AQpThatIsDestroyedAcknowledgesFirst) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Adversarial world(bits_of({Class::kOrder}), seed);
    world.write(1, 8, 0);
    EXPECT_EQ(world.right.client.destroy_qp(world.right.qpn), 0);
    world.watch([] {});
    const auto done = completions_of(world.bench.log, engine::ClientId{1});
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
  }
}

// ibv_poll_cq(3): imm_data is valid only with IBV_WC_WITH_IMM, src_qp only for UD QPs, and
// pkey_index only for GSI QPs.
TEST(AdversarialUndefined, FieldsThatDoNotApplyHaveAPattern) {
  Adversarial world(bits_of({Class::kUndefined}), 0);
  world.right.post_recv({.sges = {world.right.recv_sge(8)}});
  world.right.post_recv({.sges = {world.right.recv_sge(8)}});
  world.left.post_send({.sges = {world.left.send_sge(8)}});
  world.write(1, 8, 0, WrOpcode::kRdmaWriteWithImm);
  const auto sent = completions_of(world.bench.log, engine::ClientId{1});
  const auto received = completions_of(world.bench.log, engine::ClientId{2});
  ASSERT_EQ(sent.size(), 2u);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(sent[0].opcode, static_cast<uint32_t>(abi::WcOpcode::kSend));
  EXPECT_EQ(sent[0].byte_len, 0x5a5a5a5au);
  EXPECT_EQ(received[0].byte_len, 8u);
  EXPECT_EQ(received[0].wc_flags, 0u);
  EXPECT_EQ(received[0].imm_data, 0x5a5a5a5au);
  EXPECT_EQ(received[0].src_qp, 0x5a5a5a5au);
  EXPECT_EQ(received[0].slid, 0x5a5au);
  EXPECT_EQ(received[0].pkey_index, 0x5a5au);
  EXPECT_EQ(received[1].wc_flags, static_cast<uint32_t>(abi::kWcWithImm));
  EXPECT_EQ(received[1].imm_data, 0u);
}

// ibv_poll_cq(3): "only the following attributes are valid: wr_id, status, qp_num, and vendor_err".
TEST(AdversarialUndefined, AFailedReadLeavesAPattern) {
  Adversarial world(bits_of({Class::kUndefined}), 0);
  world.left.post_send({.wr_id = 9,
                        .opcode = WrOpcode::kRdmaRead,
                        .sges = {{Endpoint::kRecvBuffer, 24, world.left.recv_mr.lkey}},
                        .remote_address = Endpoint::kRecvBuffer,
                        .rkey = world.right.recv_mr.rkey ^ 1});
  const auto done = completions_of(world.bench.log, engine::ClientId{1});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 9u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(abi::WcStatus::kRemAccessErr));
  EXPECT_EQ(done[0].qp_num, world.left.qpn);
  EXPECT_EQ(done[0].opcode, 0x5a5a5a5au);
  EXPECT_EQ(done[0].byte_len, 0x5a5a5a5au);
  EXPECT_EQ(world.left.recv_bytes(24), std::vector<uint8_t>(24, 0x5a));
  EXPECT_EQ(world.left.recv_bytes(1, 24), std::vector<uint8_t>(1, 0));
}

TEST(AdversarialSeed, TheSameSeedGivesTheSameTimes) {
  const auto times_of = [](uint64_t seed) {
    Adversarial world(Classes::all().bits(), seed);
    std::vector<engine::Instant> times;
    for (uint8_t i = 1; i < 8; ++i) world.write(i, 100, i * 100u);
    world.watch([&] { times.push_back(world.bench.now()); });
    return times;
  };
  EXPECT_EQ(times_of(5), times_of(5));
  EXPECT_NE(times_of(5), times_of(6));
}

}  // namespace
}  // namespace rocemu::test
