// Tests direct placement: the program copies the payload of long messages, and their packets have
// none. Whatever the program does with a copy, both sides see what they see without such copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulator/engine/base/random.h"
#include "emulator/scenario/scenario.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcStatus;
using abi::WrOpcode;

constexpr uint32_t kAll = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                          abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;
constexpr size_t kBuffer = 1 << 20;
// The largest copy: 16 packets with an MTU of 4096.
constexpr uint32_t kCopy = 65536;

PairOptions both_sides(uint8_t timeout = 14, uint32_t srq_wr = 0) {
  EndpointOptions options;
  options.connection.access = kAll;
  options.connection.max_rd_atomic = 4;
  options.connection.mtu = abi::Mtu::k4096;
  options.connection.timeout = timeout;
  options.recv_access = kAll;
  options.buffer_size = kBuffer;
  PairOptions pair;
  pair.left = pair.right = options;
  pair.right.srq_wr = srq_wr;
  return pair;
}

class DirectPlacement : public testing::Test {
 protected:
  explicit DirectPlacement(const PairOptions& options = both_sides()) : pair(options) {
    memory().copies_directly = true;
    pair.left.fill_send_buffer(pattern(kBuffer));
    // The buffers were registered, and the endpoints connected, by reading and writing nothing.
    memory().reads = memory().writes = 0;
  }

  ArrayMemory& memory() { return pair.bench.memory; }
  SendWr write(uint32_t length, uint64_t offset = 0, WrOpcode opcode = WrOpcode::kRdmaWrite) {
    return {.wr_id = ++posted,
            .opcode = opcode,
            .sges = {pair.left.send_sge(length, offset)},
            .remote_address = Endpoint::kRecvBuffer + offset,
            .rkey = pair.right.recv_mr.rkey};
  }
  SendWr send(uint32_t length, uint64_t offset = 0) {
    return {.wr_id = ++posted, .sges = {pair.left.send_sge(length, offset)}};
  }
  /// Makes the copies that are under way, and lets the engine continue, until there are none.
  void make_copies() {
    while (memory().make_copy()) pair.bench.step(engine::MemoryReady{});
  }
  std::vector<uint8_t> sent(size_t length, size_t offset = 0) {
    const auto bytes = pair.left.send_bytes(length, offset);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<uint8_t> arrived(size_t length, size_t offset = 0) {
    const auto all = pair.right.recv_bytes(offset + length);
    return {all.begin() + static_cast<ptrdiff_t>(offset), all.end()};
  }
  static std::vector<uint64_t> successes(const std::vector<abi::Cqe>& done) {
    std::vector<uint64_t> ids;
    for (const abi::Cqe& cqe : done) {
      EXPECT_EQ(cqe.status, static_cast<uint32_t>(WcStatus::kSuccess)) << cqe.wr_id;
      ids.push_back(cqe.wr_id);
    }
    return ids;
  }

  using Ids = std::vector<uint64_t>;
  Pair pair;
  uint64_t posted = 0;
};

TEST_F(DirectPlacement, AWriteIsCopiedByTheProgramAlone) {
  pair.left.post_send(write(kCopy));
  EXPECT_TRUE(pair.take_left().empty()) << "before its payload has arrived";
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), Ids{1});
  EXPECT_EQ(arrived(kCopy), sent(kCopy));
  EXPECT_EQ(memory().copies_begun, 1u);
  EXPECT_EQ(memory().reads + memory().writes, 0u);
  EXPECT_TRUE(memory().copies.empty()) << "the engine forgets a copy that it has used";
}

TEST_F(DirectPlacement, SendsArriveInTheReceivesThatTheyTake) {
  pair.right.post_recv({.wr_id = 11, .sges = {pair.right.recv_sge(kCopy, 0)}});
  // This receive has two parts, and space for more than the message.
  pair.right.post_recv(
      {.wr_id = 12,
       .sges = {pair.right.recv_sge(10000, 200000), pair.right.recv_sge(90000, 300000)}});
  pair.left.post_send(send(kCopy));
  pair.left.post_send(send(40000, 65536));
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2}));
  EXPECT_EQ(successes(pair.take_right()), (Ids{11, 12}));
  EXPECT_EQ(arrived(kCopy), sent(kCopy));
  EXPECT_EQ(arrived(10000, 200000), sent(10000, 65536));
  EXPECT_EQ(arrived(30000, 300000), sent(30000, 75536));
  EXPECT_EQ(memory().reads + memory().writes, 0u);
}

TEST_F(DirectPlacement, ALongMessageIsCopiedInParts) {
  pair.right.post_recv({.wr_id = 11, .sges = {pair.right.recv_sge(1 << 20)}});
  pair.left.post_send(send((1 << 20) - 5));
  make_copies();
  EXPECT_EQ(successes(pair.take_right()), Ids{11});
  EXPECT_EQ(arrived((1 << 20) - 5), sent((1 << 20) - 5));
  EXPECT_EQ(memory().copies_begun, 16u);
  EXPECT_EQ(memory().reads + memory().writes, 0u);
}

// The first packet of a SEND takes a WQE of the SRQ, which others can take before it. Its payload
// is in packets; the copies follow.
TEST(DirectPlacementWithSrq, OnlyAMessageThatHasItsReceiveIsCopied) {
  Pair pair(both_sides(14, 4));
  pair.bench.memory.copies_directly = true;
  pair.left.fill_send_buffer(pattern(kBuffer));
  pair.right.post_recv({.wr_id = 11, .sges = {pair.right.recv_sge(kBuffer)}});
  pair.left.post_send({.wr_id = 1, .sges = {pair.left.send_sge(4 * kCopy)}});
  while (pair.bench.memory.make_copy()) pair.bench.step(engine::MemoryReady{});
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_EQ(pair.bench.memory.copies_begun, 3u);
  const auto sent = pair.left.send_bytes(4 * kCopy);
  EXPECT_EQ(pair.right.recv_bytes(4 * kCopy), std::vector<uint8_t>(sent.begin(), sent.end()));
}

TEST_F(DirectPlacement, AReadIsCopiedByItsRequester) {
  const auto there = pattern(kBuffer, 5);
  std::ranges::copy(there,
                    memory().at(pair.right.client.id(), Endpoint::kRecvBuffer, kBuffer).begin());
  SendWr read = write(3 * kCopy + 100, 0, WrOpcode::kRdmaRead);
  read.sges = {pair.left.recv_sge(3 * kCopy + 100)};
  read.remote_address += 4000;
  pair.left.post_send(read);
  EXPECT_TRUE(pair.take_left().empty());
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), Ids{1});
  EXPECT_EQ(pair.left.recv_bytes(3 * kCopy + 100),
            std::vector<uint8_t>(there.begin() + 4000, there.begin() + 4100 + 3 * kCopy));
  EXPECT_EQ(memory().copies_begun, 4u);
  EXPECT_EQ(memory().copies.size(), 0u);
  EXPECT_EQ(memory().reads + memory().writes, 0u);
}

// IBTA vol 1, 9.5: a READ after a WRITE sees its data, and a WRITE after a READ does not change
// what the READ returns.
TEST_F(DirectPlacement, ReadsAndWritesAreCopiedInTheirOrder) {
  SendWr read = write(kCopy, 0, WrOpcode::kRdmaRead);
  read.sges = {pair.left.recv_sge(kCopy)};
  SendWr second = write(kCopy, 0);
  second.sges = {pair.left.send_sge(kCopy, 4 * kCopy)};
  const auto first_bytes = sent(kCopy), second_bytes = sent(kCopy, 4 * kCopy);
  pair.left.client.post_sends(pair.left.qpn, {write(kCopy), read, second});
  EXPECT_EQ(memory().copies_begun, 2u) << "the second WRITE waits for the READ";
  make_copies();
  EXPECT_EQ(memory().copies_begun, 3u);
  EXPECT_EQ(pair.take_left().size(), 3u);
  EXPECT_EQ(pair.left.recv_bytes(kCopy), first_bytes);
  EXPECT_EQ(arrived(kCopy), second_bytes);
}

TEST_F(DirectPlacement, LaterMessagesAreCopiedWhileEarlierOnesAreSent) {
  Ids later;
  for (uint64_t i = 0; i < 16; ++i) {
    pair.left.post_send(write(kCopy, i * kCopy));
    if (i != 0) later.push_back(i + 1);
  }
  EXPECT_EQ(memory().copies.size(), 12u) << "one that is needed now, and eleven ahead";
  memory().make_copy();
  pair.bench.step(engine::MemoryReady{});
  EXPECT_EQ(successes(pair.take_left()), Ids{1});
  EXPECT_EQ(memory().copies.size(), 12u);
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), later);
  EXPECT_EQ(arrived(16 * kCopy), sent(16 * kCopy));
  EXPECT_EQ(memory().reads + memory().writes, 0u);
}

// IBTA vol 1, 9.5: a request is not executed before an earlier one. A short message and a request
// behind a fence are not copied, so nothing behind them is copied before they are executed.
TEST_F(DirectPlacement, NothingIsCopiedAheadOfARequestThatIsNotACopy) {
  SendWr fenced = write(kCopy, kCopy);
  fenced.flags |= abi::kSendFence;
  pair.left.client.post_sends(pair.left.qpn, {write(kCopy), write(8, kCopy), write(kCopy, kCopy),
                                              write(kCopy, 2 * kCopy), fenced});
  EXPECT_EQ(memory().copies.size(), 1u);
  make_copies();
  EXPECT_EQ(pair.take_left().size(), 5u);
  EXPECT_EQ(memory().copies_begun, 3u);
  EXPECT_EQ(arrived(3 * kCopy), sent(3 * kCopy));
}

// IBTA vol 1, 9.9.2: after a remote access error the later requests are flushed.
TEST(DirectPlacementOfWrongRequests, WhatTheResponderWouldRefuseIsNotCopied) {
  struct Wrong {
    uint32_t key_change;
    uint64_t address;
  };
  for (const Wrong& wrong : {Wrong{0x100, 0}, Wrong{0, kBuffer - kCopy + 1}}) {
    Pair pair(both_sides());
    pair.bench.memory.copies_directly = true;
    pair.left.fill_send_buffer(pattern(kBuffer));
    const SendWr right{.wr_id = 2,
                       .opcode = WrOpcode::kRdmaWrite,
                       .sges = {pair.left.send_sge(kCopy)},
                       .remote_address = Endpoint::kRecvBuffer,
                       .rkey = pair.right.recv_mr.rkey};
    SendWr first = right;
    first.wr_id = 1;
    first.rkey ^= wrong.key_change;
    first.remote_address += wrong.address;
    pair.left.client.post_sends(pair.left.qpn, {first, right});
    EXPECT_EQ(pair.bench.memory.copies_begun, 0u);
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kRemAccessErr));
    EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kWrFlushErr));
    EXPECT_EQ(pair.right.recv_bytes(kCopy), std::vector<uint8_t>(kCopy)) << "not executed";
  }
}

// IBTA vol 1, 9.7.5.2.8: without a receive the responder is not ready. The SEND, and the WRITE
// after it, are executed when there is one.
TEST_F(DirectPlacement, WithoutAReceiveNothingIsCopied) {
  pair.left.client.post_sends(pair.left.qpn, {send(kCopy), write(kCopy, kCopy)});
  EXPECT_EQ(memory().copies_begun, 0u);
  EXPECT_EQ(arrived(kCopy, kCopy), std::vector<uint8_t>(kCopy));
  pair.right.post_recv({.wr_id = 11, .sges = {pair.right.recv_sge(kCopy)}});
  pair.bench.advance_to(1s);
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2}));
  EXPECT_EQ(arrived(2 * kCopy), sent(2 * kCopy));
}

TEST_F(DirectPlacement, AWriteWithImmediateWithoutAReceiveIsNotCopied) {
  pair.left.client.post_sends(pair.left.qpn,
                              {write(kCopy, 0, WrOpcode::kRdmaWriteWithImm), write(kCopy, kCopy)});
  EXPECT_EQ(memory().copies_begun, 0u);
  EXPECT_EQ(arrived(kCopy, kCopy), std::vector<uint8_t>(kCopy)) << "it is behind the other WRITE";
  pair.right.post_recv({.wr_id = 11});
  pair.bench.advance_to(1s);
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2}));
  EXPECT_EQ(successes(pair.take_right()), Ids{11});
}

// The copy of a short message that is alone is not worth its handing over.
TEST_F(DirectPlacement, AShortMessageIsCopiedIfOthersFollow) {
  pair.left.post_send(write(32767));
  EXPECT_EQ(memory().copies_begun, 0u);
  pair.left.post_send(write(32768));
  EXPECT_EQ(memory().copies_begun, 1u);
  make_copies();
  pair.left.client.post_sends(pair.left.qpn, {write(16384), write(16384, kCopy), write(16383)});
  EXPECT_EQ(memory().copies_begun, 3u);
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2, 3, 4, 5}));
}

TEST_F(DirectPlacement, AllOfManyReadsAreCopied) {
  std::vector<SendWr> reads;
  for (uint64_t i = 0; i < 32; ++i) {
    reads.push_back(write(16384, 0, WrOpcode::kRdmaRead));
    reads.back().sges = {pair.left.recv_sge(16384, i * 16384)};
  }
  pair.left.client.post_sends(pair.left.qpn, reads);
  make_copies();
  EXPECT_EQ(pair.take_left().size(), 32u);
  EXPECT_EQ(memory().copies_begun, 32u);
  EXPECT_EQ(memory().reads + memory().writes, 0u);
}

// A message that is longer than its receive fails at the packet that does not fit (9.9.3, class C).
TEST_F(DirectPlacement, AMessageThatDoesNotFitIsNotCopied) {
  pair.right.post_recv({.wr_id = 11, .sges = {pair.right.recv_sge(kCopy - 1)}});
  pair.left.post_send(send(kCopy));
  EXPECT_EQ(memory().copies_begun, 0u);
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kRemInvReqErr));
}

TEST_F(DirectPlacement, ACopyThatFailsIsMadeByTheEngine) {
  pair.left.client.post_sends(pair.left.qpn, {write(kCopy), write(kCopy, kCopy)});
  EXPECT_EQ(memory().copies.size(), 2u);
  memory().fail_copies();
  memory().copies_directly = false;
  pair.bench.step(engine::MemoryReady{});
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2}));
  EXPECT_EQ(arrived(2 * kCopy), sent(2 * kCopy));
  EXPECT_TRUE(memory().copies.empty());
}

// ibv_post_send(3): memory that cannot be read is a "local protection error", and the requests
// after it are flushed and have no effect.
TEST_F(DirectPlacement, UnreadableMemoryFailsAsWithoutCopies) {
  memory().protect(pair.left.client.id(), Endpoint::kSendBuffer, false, true);
  pair.left.client.post_sends(pair.left.qpn, {write(kCopy), write(kCopy, kCopy)});
  make_copies();
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocProtErr));
  EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kWrFlushErr));
}

// ibv_modify_qp(3): in ERR all work requests are flushed, and the program has its buffers again.
TEST_F(DirectPlacement, TheErrorStateEndsCopies) {
  for (Endpoint* side : {&pair.left, &pair.right}) {
    Pair fresh(both_sides());
    fresh.bench.memory.copies_directly = true;
    Endpoint& own = side == &pair.left ? fresh.left : fresh.right;
    fresh.left.post_send({.wr_id = 1,
                          .opcode = WrOpcode::kRdmaWrite,
                          .sges = {fresh.left.send_sge(kCopy)},
                          .remote_address = Endpoint::kRecvBuffer,
                          .rkey = fresh.right.recv_mr.rkey});
    EXPECT_EQ(fresh.bench.memory.copies.size(), 1u);
    ASSERT_EQ(own.client.set_state(own.qpn, QpState::kErr), 0);
    EXPECT_FALSE(fresh.bench.memory.make_copy());
    EXPECT_EQ(fresh.bench.memory.copies.size(), side == &pair.left ? 0u : 1u);
  }
}

// A work request of the owner can invalidate a window at any time (IBTA vol 1, 10.6.7.2.4), and its
// memory must not change after that request has completed.
TEST(DirectPlacementByWindow, AWriteThroughAWindowIsNotCopied) {
  PairOptions options = both_sides();
  options.right.recv_access |= abi::kAccessMwBind;
  Pair pair(options);
  pair.bench.memory.copies_directly = true;
  pair.left.fill_send_buffer(pattern(kBuffer));
  const Mw window = pair.right.client.alloc_mw(pair.right.pd, abi::MwType::k2);
  const uint32_t rkey = (window.rkey & ~0xffu) | ((window.rkey + 1) & 0xff);  // ibv_inc_rkey(3)
  pair.right.post_send({.wr_id = 50,
                        .opcode = WrOpcode::kBindMw,
                        .remote_address = Endpoint::kRecvBuffer,
                        .rkey = rkey,
                        .bind = BindWr{.window = window.handle,
                                       .lkey = pair.right.recv_mr.lkey,
                                       .length = kCopy,
                                       .access = abi::kAccessRemoteWrite}});
  ASSERT_EQ(pair.take_right().size(), 1u);
  pair.left.post_send({.wr_id = 1,
                       .opcode = WrOpcode::kRdmaWrite,
                       .sges = {pair.left.send_sge(kCopy)},
                       .remote_address = Endpoint::kRecvBuffer,
                       .rkey = rkey});
  EXPECT_EQ(pair.bench.memory.copies_begun, 0u);
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kSuccess));
}

// IBTA vol 1, 9.7.5.1.4: a request is executed once. What the program has copied is not stored
// again, since the receiver may have seen it, and a later message in the same place.
TEST_F(DirectPlacement, WhatIsCopiedIsNeverStoredAgain) {
  std::vector<SendWr> list;
  for (uint64_t i = 0; i < 12; ++i) {
    list.push_back(write(kCopy, i * kCopy));
    list.back().remote_address = Endpoint::kRecvBuffer;
  }
  pair.left.client.post_sends(pair.left.qpn, list);
  for (int i = 0; i < 5; ++i) memory().make_copy();
  EXPECT_EQ(arrived(kCopy), sent(kCopy, 4 * kCopy));
  memory().end_copies();
  memory().copies_directly = false;
  pair.bench.step(engine::MemoryReady{});
  EXPECT_EQ(pair.take_left().size(), 12u);
  EXPECT_EQ(memory().reads, 7u);
  EXPECT_EQ(arrived(kCopy), sent(kCopy, 11 * kCopy));
}

// IBTA vol 1, 9.5: the packets of a copy that has failed come before any later copy, however fast
// the program is.
TEST_F(DirectPlacement, NothingIsCopiedAheadOfACopyThatHasFailed) {
  std::vector<SendWr> list;
  for (uint64_t i = 0; i < 16; ++i) {
    list.push_back(write(kCopy, i * kCopy));
    list.back().remote_address = Endpoint::kRecvBuffer;
  }
  pair.left.client.post_sends(pair.left.qpn, list);
  EXPECT_EQ(memory().copies.size(), 12u);
  memory().make_copy();
  memory().fail_copies();
  memory().copies_at_once = true;
  pair.bench.step(engine::MemoryReady{});
  EXPECT_EQ(pair.take_left().size(), 16u);
  EXPECT_EQ(arrived(kCopy), sent(kCopy, 15 * kCopy));
}

// A packet of a copy that is lost is sent again, and still not stored again.
TEST_F(DirectPlacement, ARepeatedPacketOfACopyIsNotStored) {
  pair.left.post_send(write(kCopy));
  memory().make_copy();
  pair.bench.step(engine::SetPort{engine::DeviceIndex{1}, false});
  pair.bench.step(engine::MemoryReady{});
  pair.bench.step(engine::SetPort{engine::DeviceIndex{1}, true});
  EXPECT_TRUE(pair.take_left().empty());
  memory().copies_directly = false;
  pair.bench.advance_to(1s);
  EXPECT_EQ(successes(pair.take_left()), Ids{1});
  EXPECT_EQ(memory().writes, 0u);
  EXPECT_EQ(arrived(kCopy), sent(kCopy));
}

TEST_F(DirectPlacement, NothingIsCopiedWhileTheNicIsPaused) {
  pair.left.post_send(write(kCopy));
  pair.bench.step(engine::Pause{true});
  EXPECT_FALSE(memory().make_copy());
  pair.left.post_send(write(kCopy, kCopy));
  EXPECT_FALSE(memory().make_copy());
  pair.bench.step(engine::Pause{false});
  pair.bench.step(engine::MemoryReady{});
  make_copies();
  EXPECT_EQ(successes(pair.take_left()), (Ids{1, 2}));
  EXPECT_EQ(arrived(2 * kCopy), sent(2 * kCopy));
}

// Packets of copies have no payload, which a rule must be able to see and change.
TEST_F(DirectPlacement, ARuleSeesThePayload) {
  pair.left.post_send(write(kCopy));
  memory().make_copy();
  pair.bench.step(engine::AddRules{
      scenario::parse_rule("{name: a, on: frame, opcode: RC_RDMA_WRITE_LAST, nth: 1, do: drop}")});
  memory().copies_directly = false;
  pair.bench.step(engine::MemoryReady{});
  EXPECT_TRUE(pair.take_left().empty()) << "its last packet was lost";
  EXPECT_GT(memory().reads, 0u);
  EXPECT_EQ(memory().writes, 0u) << "it was stored before the rule";
  pair.bench.advance_to(1s);
  EXPECT_EQ(successes(pair.take_left()), Ids{1});
  EXPECT_EQ(arrived(kCopy), sent(kCopy));
}

// 4.096 us * 2^13 is less than the time that a program may have to wait for a processor.
TEST(DirectPlacementOfHastyQps, AShortAckTimeoutPreventsCopies) {
  for (const auto& [timeout, copies] : {std::pair<uint8_t, uint64_t>{13, 0}, {14, 1}, {0, 1}}) {
    Pair pair(both_sides(timeout));
    pair.bench.memory.copies_directly = true;
    pair.left.post_send({.wr_id = 1,
                         .opcode = WrOpcode::kRdmaWrite,
                         .sges = {pair.left.send_sge(kCopy)},
                         .remote_address = Endpoint::kRecvBuffer,
                         .rkey = pair.right.recv_mr.rkey});
    EXPECT_EQ(pair.bench.memory.copies_begun, copies) << int{timeout};
  }
}

/// A random sequence of requests. Both sides see the same completions and bytes, whatever happens
/// to the copies.
class RandomMessages {
 public:
  RandomMessages(uint64_t seed, bool copies)
      : random_(seed), program_(seed ^ 77), pair_(options()) {
    pair_.bench.memory.copies_directly = copies;
    pair_.left.fill_send_buffer(pattern(kBuffer));
    for (int round = 0; round < 20; ++round) {
      std::vector<SendWr> list;
      for (uint64_t i = below(random_, 4) + 1; i > 0; --i) list.push_back(request());
      pair_.left.client.post_sends(pair_.left.qpn, list);
      while (below(program_, 3) != 0) act();
      take();
    }
    for (int i = 0; i < 200; ++i) {
      while (pair_.bench.memory.make_copy()) pair_.bench.step(engine::MemoryReady{});
      pair_.bench.advance_to(std::chrono::milliseconds(100 * (i + 1)));
    }
    take();
  }

  std::vector<std::pair<uint64_t, uint32_t>> left_done, right_done;  // wr_id and status
  std::vector<uint8_t> left_bytes() { return pair_.left.recv_bytes(kBuffer); }
  std::vector<uint8_t> right_bytes() { return pair_.right.recv_bytes(kBuffer); }
  uint64_t copies() { return pair_.bench.memory.copies_begun; }

 private:
  static PairOptions options() { return both_sides(); }
  static uint64_t below(engine::Random& random, uint64_t limit) { return random.next() % limit; }
  SendWr request() {
    const uint32_t length = below(random_, 3) == 0 ? static_cast<uint32_t>(below(random_, 300))
                                                   : static_cast<uint32_t>(below(random_, 150000));
    const uint64_t offset = below(random_, kBuffer - 150000);
    constexpr WrOpcode kOpcodes[] = {WrOpcode::kRdmaWrite, WrOpcode::kRdmaWrite, WrOpcode::kSend,
                                     WrOpcode::kRdmaWriteWithImm, WrOpcode::kRdmaRead};
    const WrOpcode opcode = kOpcodes[below(random_, 5)];
    if (opcode == WrOpcode::kSend || opcode == WrOpcode::kRdmaWriteWithImm) {
      const uint64_t at = below(random_, kBuffer - 150000);
      const auto first = static_cast<uint32_t>(below(random_, 100000));
      pair_.right.post_recv({.wr_id = 1000 + number_,
                             .sges = {pair_.right.recv_sge(first, at),
                                      pair_.right.recv_sge(150000 - first, at + first)}});
    }
    SendWr wr{.wr_id = ++number_,
              .opcode = opcode,
              .sges = {pair_.left.send_sge(length, below(random_, kBuffer - 150000))},
              .remote_address = Endpoint::kRecvBuffer + offset,
              .rkey = pair_.right.recv_mr.rkey};
    // IBTA vol 1, 10.8.3.3: without a fence a request may change what an earlier READ returns.
    if (follows_read_ && opcode != WrOpcode::kRdmaRead) wr.flags |= abi::kSendFence;
    follows_read_ = opcode == WrOpcode::kRdmaRead;
    // READs store their data in a buffer from which nothing is sent.
    if (opcode == WrOpcode::kRdmaRead) wr.sges = {pair_.left.recv_sge(length)};
    return wr;
  }
  void act() {
    ArrayMemory& memory = pair_.bench.memory;
    switch (below(program_, 4)) {
      case 0:
        memory.fail_copies();
        break;
      case 1:
        memory.end_copies();
        memory.copies_at_once = program_.next() % 2 == 0;
        break;
      default:
        memory.make_copy();
    }
    pair_.bench.step(engine::MemoryReady{});
  }
  void take() {
    for (const abi::Cqe& cqe : pair_.take_left()) left_done.emplace_back(cqe.wr_id, cqe.status);
    for (const abi::Cqe& cqe : pair_.take_right()) right_done.emplace_back(cqe.wr_id, cqe.status);
  }

  engine::Random random_, program_;
  Pair pair_;
  uint64_t number_ = 0;
  bool follows_read_ = false;
};

TEST(DirectPlacementProperty, BothSidesSeeWhatTheySeeWithoutCopies) {
  uint64_t copies = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomMessages with(seed, true), without(seed, false);
    ASSERT_EQ(with.left_done, without.left_done);
    ASSERT_EQ(with.right_done, without.right_done);
    ASSERT_EQ(with.left_bytes(), without.left_bytes());
    ASSERT_EQ(with.right_bytes(), without.right_bytes());
    copies += with.copies();
  }
  EXPECT_GT(copies, 1000u) << "the test tests something";
}

}  // namespace
}  // namespace rocemu::test
