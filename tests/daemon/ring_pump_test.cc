// The pump between a client's memory, in which anything may stand, and an engine that only gets
// what can be.
#include "emulator/daemon/ring_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstring>
#include <random>

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
constexpr uint32_t kPlenty = 100'000;

class RingPumpTest : public testing::Test {
 protected:
  RingPumpTest() {
    client.id = {3};
    client.doorbell_memory =
        std::move(NewSharedMemory::create("test", sizeof(abi::DoorbellRing))->memory);
    const abi::QpCap cap{.max_send_wr = 3,  // 4 slots
                         .max_recv_wr = 8,
                         .max_send_sge = 1,
                         .max_recv_sge = 2,
                         .max_inline_data = 0};
    const QpMemoryPlan plan = plan_qp_memory(cap);
    QueuePair qp;
    qp.memory = std::move(NewSharedMemory::create("test", plan.size)->memory);
    qp.send = {qp.memory.data() + plan.send.offset, plan.send.slots, plan.send.stride, 0};
    qp.recv = {qp.memory.data() + plan.recv.offset, plan.recv.slots, plan.recv.stride, 0};
    client.qps.emplace(kQp, std::move(qp));
    client.cqs.emplace(
        kCq, CompletionQueue(std::move(NewSharedMemory::create("test", cq_memory_size(16))->memory),
                             16, 0, {}));
  }

  abi::DoorbellRing& ring() { return client.doorbells(); }
  void ring_bell(DoorbellKind kind, uint32_t object, uint64_t value) {
    const uint32_t n = ring().producer.load();
    ring().entries[n % abi::kDoorbellEntries] = {kind, object, value};
    ring().producer.store(n + 1);
  }
  void write_send_wqe(uint32_t n, uint64_t wr_id) { write_wqe(client.qps[kQp].send, n, wr_id); }
  void write_recv_wqe(uint32_t n, uint64_t wr_id) { write_wqe(client.qps[kQp].recv, n, wr_id); }
  void add_completions(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) client.cqs.at(kCq).add({});
  }
  std::string violation() {
    const RingPump::Result result = pump.run(client, kPlenty);
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
              ElementsAre("recv 17 wr 200 of 48 bytes", "send 17 wr 100 of 128 bytes",
                          "send 17 wr 101 of 128 bytes"));
  EXPECT_EQ(ring().consumer.load(), 2u);
}

TEST_F(RingPumpTest, DoesNothingWithoutDoorbells) {
  const RingPump::Result result = pump.run(client, kPlenty);
  EXPECT_FALSE(result.worked);
  EXPECT_THAT(engine.inputs, IsEmpty());
}

TEST_F(RingPumpTest, StopsAtItsBudgetAndContinuesThere) {
  for (uint32_t i = 0; i < 4; ++i) write_send_wqe(i, i);
  ring_bell(DoorbellKind::kSend, kQp, 4);
  EXPECT_TRUE(pump.run(client, 3).more);  // one doorbell, two WQEs
  EXPECT_THAT(engine.inputs, SizeIs(2));
  EXPECT_EQ(ring().consumer.load(), 0u);
  EXPECT_FALSE(pump.run(client, 3).more);
  EXPECT_THAT(engine.inputs, SizeIs(4));
  EXPECT_EQ(ring().consumer.load(), 1u);
}

TEST_F(RingPumpTest, FindsSlotsWhenCountsAndIndicesWrap) {
  client.qps[kQp].send.seen = 0xffff'fffe;
  client.doorbells_consumed = 0xffff'ffff;
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

TEST_F(RingPumpTest, RefusesSrqs) {
  ring_bell(DoorbellKind::kSrqRecv, 1, 1);
  EXPECT_THAT(violation(), HasSubstr("SRQ"));
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
  client.qps[kQp].recv = {};
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

// Whatever stands in the ring: no crash, no endless loop, nothing foreign reaches the engine.
TEST_F(RingPumpTest, SurvivesRandomRings) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 generator(seed);
    const auto random = [&] { return static_cast<uint32_t>(generator()); };
    for (abi::Doorbell& bell : ring().entries) {
      bell.kind = static_cast<DoorbellKind>(random() % 6);
      bell.object = random() % 2 == 0 ? kQp : random() % 2 == 0 ? kCq : random();
      bell.value = random() % 4 == 0 ? random() : client.qps[kQp].send.seen + random() % 3;
    }
    ring().producer.store(client.doorbells_consumed + random() % (abi::kDoorbellEntries + 10));
    engine.inputs.clear();
    pump.run(client, kPlenty);
    for (const std::string& input : engine.inputs) {
      EXPECT_THAT(input,
                  testing::AnyOf(testing::StartsWith("send 17 "), testing::StartsWith("recv 17 "),
                                 testing::StartsWith("consume 5 "), testing::StartsWith("arm 5 ")));
    }
  }
}

TEST(QpMemoryPlan, KeepsQueuesApartAndLetsAQpWithoutAnyBeMapped) {
  const QpMemoryPlan none = plan_qp_memory({});
  EXPECT_EQ(none.send.slots, 0u);
  EXPECT_EQ(none.recv.slots, 0u);
  EXPECT_GT(none.size, 0u);

  const QpMemoryPlan both = plan_qp_memory({.max_send_wr = 100,
                                            .max_recv_wr = 1,
                                            .max_send_sge = 4,
                                            .max_recv_sge = 3,
                                            .max_inline_data = 200});
  EXPECT_EQ(both.send.slots, 128u);
  EXPECT_EQ(both.send.stride, 320u);
  EXPECT_EQ(both.recv.slots, 1u);
  EXPECT_EQ(both.recv.stride, 64u);
  EXPECT_EQ(both.recv.offset, 128u * 320u);
  EXPECT_GE(both.size, both.recv.offset + 64u);
}

TEST(CqMemory, IsSparseHoweverLarge) {
  std::optional<NewSharedMemory> memory = NewSharedMemory::create("test", cq_memory_size(1u << 22));
  ASSERT_TRUE(memory);
  CompletionQueue cq(std::move(memory->memory), 1u << 22, 0, {});
  cq.add({});
  cq.publish();
  struct stat status {};
  ASSERT_EQ(fstat(memory->file.get(), &status), 0);
  EXPECT_GT(status.st_size, 256 << 20);
  EXPECT_LT(status.st_blocks * 512, 4 << 20);
}

}  // namespace
}  // namespace rocemu::daemon
