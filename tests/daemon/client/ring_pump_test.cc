// Tests the pump that moves requests from a client's memory, which can contain anything, to the
// engine, which must get only valid requests.
#include "emulator/daemon/client/ring_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {
namespace {

using abi::DoorbellKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kQp = 17;
constexpr uint32_t kCq = 5;
constexpr uint32_t kSrq = 3;
constexpr uint32_t kPlenty = 100'000;

class RingPumpTest : public testing::Test {
 protected:
  RingPumpTest() {
    client.id = {3};
    client.doorbell_memory = std::move(*client.arena.take(sizeof(abi::DoorbellRing)));
    const abi::QpCap cap{.max_send_wr = 3,  // 4 slots
                         .max_recv_wr = 8,
                         .max_send_sge = 1,
                         .max_recv_sge = 2,
                         .max_inline_data = 0};
    const QpMemoryPlan plan = plan_qp_memory(cap);
    QueuePair qp;
    qp.memory = std::move(*client.arena.take(plan.size));
    qp.send = {qp.memory.data() + plan.send.offset, plan.send.slots, plan.send.stride, 0};
    qp.recv = {qp.memory.data() + plan.recv.offset, plan.recv.slots, plan.recv.stride, 0};
    client.qps.insert(kQp, std::move(qp));
    const SrqMemoryPlan srq_plan = plan_srq_memory(8, 1);
    SharedReceiveQueue srq;
    srq.memory = std::move(*client.arena.take(srq_plan.size));
    srq.recv = {srq.memory.data(), srq_plan.recv.slots, srq_plan.recv.stride, 0};
    client.srqs.insert(kSrq, std::move(srq));
    client.cqs.insert(
        kCq, CompletionQueue(std::move(*client.arena.take(cq_memory_size(16))), 16, 0, {}));
  }

  abi::DoorbellRing& ring() { return client.doorbells(); }
  void ring_bell(DoorbellKind kind, uint32_t object, uint64_t value) {
    const uint32_t n = ring().producer.load();
    ring().entries[n % abi::kDoorbellEntries] = {kind, object, value};
    ring().producer.store(n + 1);
  }
  void write_send_wqe(uint32_t n, uint64_t wr_id) {
    write_wqe(client.qps.find(kQp)->send, n, wr_id);
  }
  void write_recv_wqe(uint32_t n, uint64_t wr_id) {
    write_wqe(client.qps.find(kQp)->recv, n, wr_id);
  }
  void write_srq_wqe(uint32_t n, uint64_t wr_id) {
    write_wqe(client.srqs.find(kSrq)->recv, n, wr_id);
  }
  void add_completions(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) client.cqs.find(kCq)->add({});
  }
  RingPump::Result run(uint32_t budget) {
    return pump.run(client, RingPump::end_of(client), budget);
  }
  const char* take_receives(uint32_t budget = kPlenty) {
    return pump.take_receives(client, budget);
  }
  std::string violation() {
    const RingPump::Result result = run(kPlenty);
    return result.violation == nullptr ? "" : result.violation;
  }

  ClientQueues client;
  RecordingEngine engine;
  RingPump pump{engine};

 private:
  static void write_wqe(const WorkQueueView& queue, uint32_t n, uint64_t wr_id) {
    std::memcpy(const_cast<std::byte*>(queue.slot(n)), &wr_id, sizeof wr_id);
  }
};

TEST_F(RingPumpTest, HandsOverEachNewWqeInOrder) {
  write_send_wqe(0, 100);
  write_send_wqe(1, 101);
  write_recv_wqe(0, 200);
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  ring_bell(DoorbellKind::kSend, kQp, 2);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs,
              ElementsAre("recv 17 wr 200 of 48 bytes", "send 17 wr 100 of 256 bytes",
                          "send 17 wr 101 of 256 bytes"));
  EXPECT_EQ(ring().consumer.load(), 2u);
  EXPECT_THAT(engine.batches, ElementsAre(3u)) << "what they do becomes visible together";
}

TEST_F(RingPumpTest, DoesNothingWithoutDoorbells) {
  const RingPump::Result result = run(kPlenty);
  EXPECT_FALSE(result.worked);
  EXPECT_THAT(engine.inputs, IsEmpty());
  EXPECT_THAT(engine.batches, IsEmpty());
}

TEST_F(RingPumpTest, StopsAtItsBudgetAndContinuesThere) {
  for (uint32_t i = 0; i < 4; ++i) write_send_wqe(i, i);
  ring_bell(DoorbellKind::kSend, kQp, 4);
  EXPECT_TRUE(run(3).more);  // a budget of 3: one for the doorbell and two for WQEs
  EXPECT_THAT(engine.inputs, SizeIs(2));
  EXPECT_EQ(ring().consumer.load(), 0u);
  EXPECT_FALSE(run(3).more);
  EXPECT_THAT(engine.inputs, SizeIs(4));
  EXPECT_EQ(ring().consumer.load(), 1u);
}

TEST_F(RingPumpTest, SendsThatWereRungOneByOneAreHandedOverTogether) {
  engine.most = 3;
  for (uint32_t i = 0; i < 4; ++i) {
    write_send_wqe(i, 100 + i);
    ring_bell(DoorbellKind::kSend, kQp, i + 1);
  }
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs,
              ElementsAre("send 17 wr 100 of 768 bytes", "send 17 wr 103 of 256 bytes"));
  EXPECT_EQ(ring().consumer.load(), 4u);
  EXPECT_EQ(client.doorbells_total, 4u);
}

TEST_F(RingPumpTest, SendsStayAfterEarlierDoorbells) {
  engine.most = 3;
  write_send_wqe(0, 100);
  write_send_wqe(1, 101);
  ring_bell(DoorbellKind::kSend, kQp, 1);
  ring_bell(DoorbellKind::kCqArm, kCq, 0);
  ring_bell(DoorbellKind::kSend, kQp, 2);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, ElementsAre("send 17 wr 100 of 256 bytes", "arm 5 at 0",
                                         "send 17 wr 101 of 256 bytes"));
}

TEST_F(RingPumpTest, MoreDoorbellsOfOneSendQueueThanTheBudgetTakeSeveralRuns) {
  for (uint32_t i = 0; i < 4; ++i) {
    write_send_wqe(i, i);
    ring_bell(DoorbellKind::kSend, kQp, i + 1);
  }
  for (size_t runs = 1; runs <= 4; ++runs) {
    EXPECT_EQ(run(2).more, runs < 4);  // a budget of 2: one for the doorbell and one for a WQE
    EXPECT_THAT(engine.inputs, SizeIs(runs));
  }
  EXPECT_EQ(ring().consumer.load(), 4u);
}

TEST_F(RingPumpTest, FindsSlotsWhenCountsAndIndicesWrap) {
  client.qps.find(kQp)->send.seen = 0xffff'fffe;
  client.doorbells_consumed = client.receives_taken = 0xffff'ffff;
  ring().producer.store(0xffff'ffff);
  write_send_wqe(0xffff'fffe, 1);
  write_send_wqe(0xffff'ffff, 2);
  write_send_wqe(0, 3);
  ring_bell(DoorbellKind::kSend, kQp, 0x1'0000'0000);
  ring_bell(DoorbellKind::kSend, kQp, 0x1'0000'0001);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs,
              ElementsAre(HasSubstr("wr 1 "), HasSubstr("wr 2 "), HasSubstr("wr 3 ")));
  EXPECT_EQ(ring().consumer.load(), 1u);
}

TEST_F(RingPumpTest, ReceivesCanBeTakenAheadAndAreNotTakenAgain) {
  write_send_wqe(0, 100);
  write_recv_wqe(0, 200);
  write_srq_wqe(0, 300);
  ring_bell(DoorbellKind::kSend, kQp, 1);
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 1);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_EQ(ring().consumer.load(), 0u);
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_THAT(engine.inputs,
              ElementsAre(HasSubstr("wr 200 "), HasSubstr("wr 300 "), HasSubstr("wr 100 ")));
  EXPECT_EQ(ring().consumer.load(), 3u);
}

// If another client posts a send after this client armed its CQ, the CQ must be armed before that
// send completes in the CQ.
TEST_F(RingPumpTest, RequestsForNotificationAreTakenAheadWithTheReceives) {
  write_send_wqe(0, 100);
  ring_bell(DoorbellKind::kSend, kQp, 1);
  ring_bell(DoorbellKind::kCqArm, kCq, 0);
  ring_bell(DoorbellKind::kCqArm, kCq, abi::kCqArmSolicited);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_THAT(engine.inputs, ElementsAre(HasSubstr("arm"), HasSubstr("arm")));
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, ElementsAre(HasSubstr("arm"), HasSubstr("arm"), HasSubstr("wr 100 ")));
}

TEST_F(RingPumpTest, ReceivesHaveABudgetAndContinueWhereItEnded) {
  for (uint32_t i = 0; i < 8; ++i) {
    write_recv_wqe(i, 200 + i);
    write_srq_wqe(i, 300 + i);
  }
  write_send_wqe(0, 100);
  ring_bell(DoorbellKind::kSend, kQp, 1);
  ring_bell(DoorbellKind::kRecv, kQp, 8);
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 8);
  uint32_t budget = 8;  // enough for two doorbells and six WQEs
  EXPECT_EQ(pump.take_receives(client, budget), nullptr);
  EXPECT_EQ(budget, 0u);
  EXPECT_THAT(engine.inputs, SizeIs(6));
  EXPECT_EQ(pump.take_receives(client, budget), nullptr);
  EXPECT_THAT(engine.inputs, SizeIs(6));
  EXPECT_TRUE(run(5).more);  // enough for two doorbells, the send and two more receives
  EXPECT_THAT(engine.inputs, SizeIs(9));
  EXPECT_EQ(take_receives(8), nullptr);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, SizeIs(17));
  EXPECT_EQ(ring().consumer.load(), 3u);
}

TEST_F(RingPumpTest, SendsOfManyQueuesHaveALimitOfStepsAtATime) {
  const QueuePair& first = *client.qps.find(kQp);
  for (uint32_t n = 0; n < 2 * RingPump::kMaxSteps; ++n) {
    client.qps.insert(100 + n, {}).send = first.send;
    ring_bell(DoorbellKind::kSend, 100 + n, 1);
  }
  EXPECT_TRUE(run(kPlenty).more);
  EXPECT_THAT(engine.inputs, SizeIs(RingPump::kMaxSteps));
  EXPECT_FALSE(run(kPlenty).more);
  EXPECT_THAT(engine.inputs, SizeIs(2 * RingPump::kMaxSteps));
}

TEST_F(RingPumpTest, DoorbellsInOrderOfTheirObjectsHaveABudgetAndKeepTheirOrder) {
  for (uint32_t i = 0; i < 2; ++i) write_send_wqe(i, 100 + i);
  for (uint32_t i = 0; i < 3; ++i) write_recv_wqe(i, 200 + i);
  ring_bell(DoorbellKind::kSend, kQp, 2);
  ring_bell(DoorbellKind::kRecv, kQp, 3);
  const uint32_t limit = RingPump::end_of(client);
  EXPECT_TRUE(pump.run_by_object(client, limit, 3).more);
  write_srq_wqe(0, 300);
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 1);
  EXPECT_EQ(take_receives(), nullptr) << "they have their turn in order";
  EXPECT_EQ(ring().consumer.load(), 0u) << "a request waits for all of them";
  EXPECT_FALSE(pump.run_by_object(client, RingPump::end_of(client), kPlenty).more);
  EXPECT_EQ(ring().consumer.load(), 2u);
  EXPECT_FALSE(pump.run_by_object(client, RingPump::end_of(client), kPlenty).more);
  EXPECT_THAT(engine.inputs,
              ElementsAre(HasSubstr("wr 200 "), HasSubstr("wr 201 "), HasSubstr("wr 202 "),
                          HasSubstr("wr 100 "), HasSubstr("wr 101 "), HasSubstr("wr 300 ")));
}

TEST_F(RingPumpTest, ReceivesTakenAheadAreNotTakenAgainInOrderOfObjects) {
  for (uint32_t i = 0; i < 2; ++i) write_recv_wqe(i, 200 + i);
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  ring_bell(DoorbellKind::kRecv, kQp, 2);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_EQ(pump.run_by_object(client, RingPump::end_of(client), kPlenty).violation, nullptr);
  EXPECT_THAT(engine.inputs, SizeIs(2));
}

TEST_F(RingPumpTest, WhatComesAfterTheLimitWaits) {
  write_send_wqe(0, 100);
  ring_bell(DoorbellKind::kSend, kQp, 1);
  const uint32_t limit = RingPump::end_of(client);
  write_send_wqe(1, 101);
  write_recv_wqe(0, 200);
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  ring_bell(DoorbellKind::kSend, kQp, 2);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_FALSE(pump.run(client, limit, kPlenty).more);
  EXPECT_THAT(engine.inputs, ElementsAre(HasSubstr("wr 200 "), HasSubstr("wr 100 ")));
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs,
              ElementsAre(HasSubstr("wr 200 "), HasSubstr("wr 100 "), HasSubstr("wr 101 ")));
}

TEST_F(RingPumpTest, ReceivesTakenAheadAreCheckedAsAnyOther) {
  ring_bell(DoorbellKind::kRecv, kQp, 9);
  EXPECT_THAT(take_receives(), HasSubstr("more WQEs than the queue has slots"));
  ring().producer.store(client.doorbells_consumed + abi::kDoorbellEntries + 1);
  EXPECT_THAT(take_receives(), HasSubstr("further ahead"));
}

TEST_F(RingPumpTest, AnIndexThatGoesBackFindsNothingToTake) {
  write_recv_wqe(0, 200);
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  EXPECT_EQ(take_receives(), nullptr);
  ring().producer.store(0);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_THAT(engine.inputs, SizeIs(1));
}

TEST_F(RingPumpTest, StopsAtOnceWhenTheEngineEndsTheClient) {
  engine.on_submit = [this] { client.ended = true; };
  ring_bell(DoorbellKind::kSend, kQp, 3);
  ring_bell(DoorbellKind::kSend, kQp, 4);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, SizeIs(1));
}

TEST_F(RingPumpTest, RefusesAProducerFurtherAheadThanTheRing) {
  ring().producer.store(abi::kDoorbellEntries + 1);
  EXPECT_THAT(violation(), HasSubstr("producer index"));
  ring().producer.store(0xffff'ffff);  // behind us
  EXPECT_THAT(violation(), HasSubstr("producer index"));
  EXPECT_THAT(engine.inputs, IsEmpty());
}

TEST_F(RingPumpTest, TakesAFullRing) {
  for (uint32_t i = 0; i < abi::kDoorbellEntries; ++i) ring_bell(DoorbellKind::kCqArm, kCq, 0);
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(ring().consumer.load(), abi::kDoorbellEntries);
}

TEST_F(RingPumpTest, RefusesUnknownKinds) {
  for (const uint32_t kind : {0u, 6u, 0xffff'ffffu}) {
    ring_bell(static_cast<DoorbellKind>(kind), kQp, 1);
    EXPECT_THAT(violation(), HasSubstr("unknown kind"));
  }
}

TEST_F(RingPumpTest, RefusesForeignQp) {
  ring_bell(DoorbellKind::kSend, kQp + 1, 1);
  EXPECT_THAT(violation(), HasSubstr("QP that the client does not have"));
}

TEST_F(RingPumpTest, RefusesForeignCq) {
  ring_bell(DoorbellKind::kCqArm, kCq + 1, 0);
  EXPECT_THAT(violation(), HasSubstr("CQ that the client does not have"));
}

TEST_F(RingPumpTest, HandsOverTheReceivesOfAnSrq) {
  for (uint32_t i = 0; i < 3; ++i) write_srq_wqe(i, 300 + i);
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 2);
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 3);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs,
              ElementsAre("recv of SRQ 3 wr 300 of 32 bytes", "recv of SRQ 3 wr 301 of 32 bytes",
                          "recv of SRQ 3 wr 302 of 32 bytes"));
}

// perftest posts each receive with a separate call, which rings a doorbell.
TEST_F(RingPumpTest, ReceivesThatWereRungOneByOneAreHandedOverTogether) {
  engine.most = 3;
  for (uint32_t i = 0; i < 4; ++i) {
    write_recv_wqe(i, 200 + i);
    ring_bell(DoorbellKind::kRecv, kQp, i + 1);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    write_srq_wqe(i, 300 + i);
    ring_bell(DoorbellKind::kSrqRecv, kSrq, i + 1);
  }
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_THAT(engine.inputs,
              ElementsAre("recv 17 wr 200 of 144 bytes", "recv 17 wr 203 of 48 bytes",
                          "recv of SRQ 3 wr 300 of 64 bytes"));
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, SizeIs(3));
  EXPECT_EQ(ring().consumer.load(), 6u);
}

// The budget ends between two receives. The next call takes the remaining receives, and also those
// of doorbells that arrived in the meantime.
TEST_F(RingPumpTest, ReceivesThatWereRungOneByOneContinueWhereTheBudgetEnded) {
  engine.most = 3;
  for (uint32_t i = 0; i < 3; ++i) {
    write_recv_wqe(i, 200 + i);
    ring_bell(DoorbellKind::kRecv, kQp, i + 1);
  }
  EXPECT_EQ(take_receives(3), nullptr);  // a budget of 3: one for the doorbell and two for WQEs
  EXPECT_THAT(engine.inputs, ElementsAre("recv 17 wr 200 of 96 bytes"));
  write_recv_wqe(3, 203);
  ring_bell(DoorbellKind::kRecv, kQp, 4);
  EXPECT_EQ(take_receives(), nullptr);
  EXPECT_THAT(engine.inputs,
              ElementsAre("recv 17 wr 200 of 96 bytes", "recv 17 wr 202 of 96 bytes"));
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, SizeIs(2));
}

// If a doorbell's WQEs were already taken together with those of a later doorbell, the doorbell
// adds nothing.
TEST_F(RingPumpTest, ReceivesThatWereTakenTogetherInPartAreContinuedInOrder) {
  engine.most = 3;
  for (uint32_t i = 0; i < 6; ++i) {
    write_recv_wqe(i, 200 + i);
    write_srq_wqe(i, 300 + i);
  }
  for (const auto& [kind, object] :
       {std::pair(DoorbellKind::kRecv, kQp), std::pair(DoorbellKind::kSrqRecv, kSrq)}) {
    engine.inputs.clear();
    for (uint32_t count = 2; count <= 6; count += 2) ring_bell(kind, object, count);
    EXPECT_EQ(take_receives(4), nullptr);  // a budget of 4: one for the doorbell and three for WQEs
    EXPECT_THAT(engine.inputs, SizeIs(1));
    EXPECT_EQ(violation(), "");
    EXPECT_THAT(engine.inputs, SizeIs(3)) << "one for each doorbell that is left";
    EXPECT_EQ(ring().consumer.load(), ring().producer.load());
  }
}

TEST_F(RingPumpTest, RefusesForeignSrq) {
  ring_bell(DoorbellKind::kSrqRecv, kSrq + 1, 1);
  EXPECT_THAT(violation(), HasSubstr("SRQ that the client does not have"));
}

TEST_F(RingPumpTest, RefusesMoreReceivesThanTheSrqHasSlots) {
  ring_bell(DoorbellKind::kSrqRecv, kSrq, 9);
  EXPECT_THAT(violation(), HasSubstr("more WQEs than the queue has slots"));
}

TEST_F(RingPumpTest, RefusesMoreWqesThanSlots) {
  ring_bell(DoorbellKind::kSend, kQp, 5);
  EXPECT_THAT(violation(), HasSubstr("more WQEs than the queue has slots"));
}

TEST_F(RingPumpTest, RefusesACountThatRunsBackwards) {
  ring_bell(DoorbellKind::kSend, kQp, 3);
  ring_bell(DoorbellKind::kSend, kQp, 2);
  EXPECT_THAT(violation(), HasSubstr("more WQEs than the queue has slots"));
}

TEST_F(RingPumpTest, RefusesPostsToAQueueThatDoesNotExist) {
  client.qps.find(kQp)->recv = {};
  ring_bell(DoorbellKind::kRecv, kQp, 1);
  EXPECT_THAT(violation(), HasSubstr("more WQEs than the queue has slots"));
}

TEST_F(RingPumpTest, ArmsAtTheIndexTheClientSaw) {
  add_completions(2);
  ring_bell(DoorbellKind::kCqArm, kCq, 1);
  ring_bell(DoorbellKind::kCqArm, kCq, 2 | abi::kCqArmSolicited);
  EXPECT_EQ(violation(), "");
  EXPECT_THAT(engine.inputs, ElementsAre("arm 5 at 1", "arm 5 at 2 solicited"));
}

TEST_F(RingPumpTest, RefusesToArmInTheFuture) {
  add_completions(2);
  ring_bell(DoorbellKind::kCqArm, kCq, 3);
  EXPECT_THAT(violation(), HasSubstr("has not reached"));
}

// Whatever the ring contains, the daemon does not crash or loop forever, and the engine gets no
// requests of other clients.
TEST_F(RingPumpTest, SurvivesRandomRings) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 generator(seed);
    const auto random = [&] { return static_cast<uint32_t>(generator()); };
    for (abi::Doorbell& bell : ring().entries) {
      bell.kind = static_cast<DoorbellKind>(random() % 6);
      const uint32_t objects[] = {kQp, kCq, kSrq, random()};
      bell.object = objects[random() % 4];
      bell.value = random() % 4 == 0 ? random() : client.qps.find(kQp)->send.seen + random() % 3;
    }
    ring().producer.store(client.doorbells_consumed + random() % (abi::kDoorbellEntries + 10));
    engine.inputs.clear();
    if (random() % 2 == 0) take_receives();
    run(kPlenty);
    for (const std::string& input : engine.inputs) {
      EXPECT_THAT(input, testing::AnyOf(
                             testing::StartsWith("send 17 "), testing::StartsWith("recv 17 "),
                             testing::StartsWith("recv of SRQ 3 "), testing::StartsWith("arm 5 ")));
    }
  }
}

}  // namespace
}  // namespace rocemu::daemon
