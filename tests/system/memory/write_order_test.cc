// Tests the order in which the NIC writes to a program that has several threads, and therefore does
// not share its pages with the NIC: all data is written in the order in which it was sent, even if
// the NIC combines some writes.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/page_size.h"
#include "tests/system/map_pages.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

const size_t kWordsInPage = kPageSize / sizeof(uint64_t);
constexpr size_t kPages = 16;
const size_t kBytes = kPages * kWordsInPage * sizeof(uint64_t);

class WriteOrder : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    other_thread = std::thread([this] { stop.wait(false); });
    source = reinterpret_cast<uint64_t*>(map_pages(kBytes));
    target = reinterpret_cast<uint64_t*>(map_pages(kBytes));
    source_mr = enter(source);
    target_mr = enter(target);
    qp = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  }
  void TearDown() override {
    stop = true;
    stop.notify_all();
    other_thread.join();
    qp.reset();
    source_mr.reset();
    target_mr.reset();
    munmap(source, kBytes);
    munmap(target, kBytes);
    TransportTest::TearDown();
  }

  MrPtr enter(uint64_t* words) {
    MrPtr region(ibv_reg_mr(pd.get(), words, kBytes, IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    EXPECT_NE(region, nullptr);
    return region;
  }

  /// Requests that are posted together.
  class Burst {
   public:
    explicit Burst(WriteOrder& test) : test_(test) {}

    /// Adds a request for `count` words: a WRITE from word `from` of the source to word `to` of the
    /// target, or a READ in the other direction.
    ibv_send_wr& add(ibv_wr_opcode opcode, size_t from, size_t to, size_t count) {
      const bool writes = opcode == IBV_WR_RDMA_WRITE;
      ibv_sge& sge = sges_[count_];
      sge = {reinterpret_cast<uint64_t>(test_.source + (writes ? from : to)),
             static_cast<uint32_t>(count * sizeof(uint64_t)), test_.source_mr->lkey};
      ibv_send_wr& wr = wrs_[count_];
      wr = {};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = opcode;
      wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(test_.target + (writes ? to : from)),
                    .rkey = test_.target_mr->rkey};
      if (count_ > 0) wrs_[count_ - 1].next = &wr;
      ++count_;
      return wr;
    }
    void post() {
      wrs_[count_ - 1].send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_send(test_.qp.get(), &wrs_[0], &bad), 0);
    }

   private:
    WriteOrder& test_;
    std::array<ibv_send_wr, 16> wrs_{};
    std::array<ibv_sge, 16> sges_{};
    size_t count_ = 0;
  };

  void finish() {
    const auto completions = poll_for(cq.get(), 1);
    ASSERT_EQ(completions.size(), 1u);
    ASSERT_EQ(completions[0].status, IBV_WC_SUCCESS);
  }
  uint64_t seen(size_t word) const { return std::atomic_ref(target[word]).load(); }

  std::thread other_thread;
  std::atomic<bool> stop{false};
  uint64_t *source = nullptr, *target = nullptr;
  MrPtr source_mr, target_mr;
  QpPtr qp;
};

// IBTA vol 1, 9.5 and o9-20: a program that watches the last bytes of a WRITE sees the bytes of all
// WRITEs before it.
TEST_F(WriteOrder, ShortWritesAreSeenBeforeALongOneBehindThem) {
  const size_t kLong = 4 * kWordsInPage;  // the length of the long WRITE, and its first word
  for (uint64_t round = 1; round <= 1000; ++round) {
    std::fill_n(source, kPages * kWordsInPage, round);
    Burst burst(*this);
    for (size_t i = 0; i < 8; ++i) burst.add(IBV_WR_RDMA_WRITE, i, i * 64, 1);
    burst.add(IBV_WR_RDMA_WRITE, 0, kLong, kLong);
    ASSERT_NO_FATAL_FAILURE(burst.post());
    while (seen(2 * kLong - 1) != round) std::this_thread::yield();
    for (size_t i = 0; i < 8; ++i) ASSERT_EQ(seen(i * 64), round) << i;
    ASSERT_NO_FATAL_FAILURE(finish());
  }
}

TEST_F(WriteOrder, ShortWritesAreSeenInTheirOrder) {
  for (uint64_t round = 1; round <= 1000; ++round) {
    std::fill_n(source, 16, round);
    Burst burst(*this);
    for (size_t i = 0; i < 16; ++i) burst.add(IBV_WR_RDMA_WRITE, i, i * 200, 1);
    ASSERT_NO_FATAL_FAILURE(burst.post());
    for (size_t i = 16; i-- > 0;) {
      while (seen(i * 200) != round) std::this_thread::yield();
      for (size_t earlier = 0; earlier < i; ++earlier) ASSERT_EQ(seen(earlier * 200), round) << i;
    }
    ASSERT_NO_FATAL_FAILURE(finish());
  }
}

// IBTA vol 1, 9.5: a READ after a WRITE sees its data.
TEST_F(WriteOrder, AReadSeesTheShortWriteBeforeIt) {
  for (uint64_t round = 1; round <= 1000; ++round) {
    source[0] = round;
    source[100] = 0;
    Burst burst(*this);
    burst.add(IBV_WR_RDMA_WRITE, 0, 7, 1);
    burst.add(IBV_WR_RDMA_READ, 7, 100, 1);
    ASSERT_NO_FATAL_FAILURE(burst.post());
    ASSERT_NO_FATAL_FAILURE(finish());
    ASSERT_EQ(source[100], round);
  }
}

TEST_F(WriteOrder, AnAtomicAddsToTheShortWriteBeforeIt) {
  for (uint64_t round = 1; round <= 1000; ++round) {
    source[0] = round;
    Burst burst(*this);
    burst.add(IBV_WR_RDMA_WRITE, 0, 7, 1);
    ibv_send_wr& add = burst.add(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 100, 1);
    add.wr.atomic = {.remote_addr = reinterpret_cast<uint64_t>(target + 7),
                     .compare_add = 5,
                     .swap = 0,
                     .rkey = target_mr->rkey};
    burst.add(IBV_WR_RDMA_READ, 7, 101, 1);
    ASSERT_NO_FATAL_FAILURE(burst.post());
    ASSERT_NO_FATAL_FAILURE(finish());
    ASSERT_EQ(source[100], round);
    ASSERT_EQ(source[101], round + 5);
  }
}

// The region is without on-demand paging, so a NIC has pinned its memory.
TEST_F(WriteOrder, AWriteToAnUnmappedPageDoesNotAffectOthers) {
  Burst first(*this);
  first.add(IBV_WR_RDMA_WRITE, 0, 0, 1);
  first.add(IBV_WR_RDMA_WRITE, 0, kWordsInPage, 1);
  ASSERT_NO_FATAL_FAILURE(first.post());
  ASSERT_NO_FATAL_FAILURE(finish());
  munmap(target, kWordsInPage * sizeof(uint64_t));
  source[0] = 7;
  Burst second(*this);
  second.add(IBV_WR_RDMA_WRITE, 0, 0, 1);
  second.add(IBV_WR_RDMA_WRITE, 0, kWordsInPage, 1);
  ASSERT_NO_FATAL_FAILURE(second.post());
  ASSERT_NO_FATAL_FAILURE(finish());
  EXPECT_EQ(seen(kWordsInPage), 7u);
}

}  // namespace
}  // namespace rocemu::system_test
