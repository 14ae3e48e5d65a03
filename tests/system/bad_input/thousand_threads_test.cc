// Tests one QP and one CQ that a thousand threads use: each thread posts, and each polls the
// completions of all.
#include <atomic>
#include <thread>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr uint64_t kThreads = 1000;
constexpr uint64_t kEach = 10;
constexpr uint64_t kAll = kThreads * kEach;

class ThousandThreads : public TransportTest {
 protected:
  /// Creates a QP that is connected to itself. Its queues are shorter than the number of requests
  /// that all threads post at once.
  void SetUp() override {
    TransportTest::SetUp();
    queue = create_cq(2 * kDepth);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = queue.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {kDepth, kDepth, 1, 1, 0};
    qp.reset(ibv_create_qp(pd.get(), &init));
    ASSERT_NE(qp, nullptr);
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  }

  /// Runs `post(number)` once for every number, in a thousand threads. Each thread polls when its
  /// queue is full, and at the end until everything is complete.
  template <class Post>
  void run(uint64_t completions, Post post) {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          int error;
          while ((error = post(t * kEach + i)) == ENOMEM) poll();
          if (error != 0) ++errors;
        }
        while (completed < completions && errors == 0) poll();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(errors, 0);
    EXPECT_EQ(completed, completions);
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(queue.get(), 1, &wc), 0);
  }

  void poll() {
    ibv_wc wc[4];
    const int count = ibv_poll_cq(queue.get(), 4, wc);
    if (count < 0) ++errors;
    for (int i = 0; i < count; ++i) {
      if (wc[i].status != IBV_WC_SUCCESS) ++errors;
      ++seen[wc[i].opcode == IBV_WC_RECV][wc[i].wr_id];
      ++completed;
    }
  }

  static constexpr uint32_t kDepth = 256;
  CqPtr queue;
  QpPtr qp;
  std::atomic<uint64_t> completed{0};
  std::atomic<int> errors{0};
  std::array<std::vector<std::atomic<uint8_t>>, 2> seen{std::vector<std::atomic<uint8_t>>(kAll),
                                                        std::vector<std::atomic<uint8_t>>(kAll)};
};

TEST_F(ThousandThreads, WriteEachToItsOwnPlace) {
  std::vector<uint64_t> source(kAll), target(kAll);
  for (uint64_t i = 0; i < kAll; ++i) source[i] = i + 1;
  const auto reg = [&](std::vector<uint64_t>& words) {
    return MrPtr(ibv_reg_mr(pd.get(), words.data(), words.size() * sizeof(uint64_t),
                            IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
  };
  const MrPtr from = reg(source), to = reg(target);
  ASSERT_TRUE(from && to);
  run(kAll, [&](uint64_t number) {
    ibv_sge place{reinterpret_cast<uint64_t>(&source[number]), sizeof(uint64_t), from->lkey};
    ibv_send_wr wr{};
    wr.wr_id = number;
    wr.sg_list = &place;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(&target[number]), .rkey = to->rkey};
    return TransportTest::post(qp.get(), wr);
  });
  EXPECT_EQ(target, source);
  for (uint64_t i = 0; i < kAll; ++i) ASSERT_EQ(seen[0][i], 1) << i;
}

TEST_F(ThousandThreads, SendAndReceive) {
  // Each thread posts the receive before the message, so that no waiting thread waits for another
  // one.
  run(2 * kAll, [&](uint64_t number) {
    static thread_local bool received = false;
    ibv_recv_wr recv{};
    recv.wr_id = number;
    ibv_recv_wr* bad_recv = nullptr;
    if (!received) {
      if (const int error = ibv_post_recv(qp.get(), &recv, &bad_recv); error != 0) return error;
    }
    received = true;
    ibv_send_wr wr{};
    wr.wr_id = number;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    const int error = TransportTest::post(qp.get(), wr);
    received = error == ENOMEM;
    return error;
  });
  for (uint64_t i = 0; i < kAll; ++i) {
    ASSERT_EQ(seen[0][i], 1) << i;
    ASSERT_EQ(seen[1][i], 1) << i;
  }
}

}  // namespace
}  // namespace rocemu::system_test
