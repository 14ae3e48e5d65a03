// Tests that short messages are copied into the WQE or a slot when they are posted, if the program
// cannot detect this.
#include <gtest/gtest.h>

#include <cerrno>

#include <sys/mman.h>

#include "tests/provider/fake_queues.h"
#include "tests/support/page_size.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/datapath/auto_inline.h"
#include "verbs_provider/objects/qp_ex.h"
#include "verbs_provider/structs/mr.h"

namespace rocemu::provider {
namespace {

constexpr uint32_t kLkey = 0x4321;
class Carry : public testing::Test {
 protected:
  Carry() {
    for (size_t i = 0; i < sizeof(memory_); ++i) memory_[i] = static_cast<char>('a' + i % 26);
    enter(memory_, sizeof(memory_));
    wr_.opcode = IBV_WR_SEND;
    wr_.sg_list = &sge_;
    wr_.num_sge = 1;
  }

  void enter(const void* address, uint64_t length) {
    mr_.verbs.mr.lkey = kLkey;
    mr_.own_address = reinterpret_cast<uint64_t>(address);
    mr_.own_length = length;
    queues_.parts().regions.insert(region_number(kLkey), &mr_);
  }
  static ibv_sge sge(const void* address, uint32_t length) {
    return {reinterpret_cast<uint64_t>(address), length, kLkey};
  }
  /// Posts the request, and returns the message's bytes, which follow the list of SGEs in its WQE.
  std::string carried_by(ibv_send_wr wr) {
    ibv_send_wr* bad;
    const auto index = static_cast<uint32_t>(queues_.qp->send.posted);
    queues_.qp->send.released = index;
    EXPECT_EQ(post_send(queues_.qp_base(), &wr, &bad), 0);
    const abi::SendWqe wqe = queues_.send_wqe(index);
    EXPECT_EQ(wqe.num_sge, static_cast<uint32_t>(wr.num_sge)) << "the list is there in any case";
    return {reinterpret_cast<const char*>(queues_.send_slot(index)) + sizeof(wqe) +
                wqe.num_sge * sizeof(abi::Sge),
            wqe.inline_size};
  }

  FakeQueues queues_;
  Mr mr_{};
  alignas(8) char memory_[512];
  ibv_sge sge_ = sge(memory_ + 3, 13);
  ibv_send_wr wr_{};
};

TEST_F(Carry, IncludesTheDataOfASend) {
  EXPECT_EQ(carried_by(wr_), std::string(memory_ + 3, 13));
}

TEST_F(Carry, IncludesTheDataOfAWriteFromSeveralPlaces) {
  ibv_sge sges[] = {sge(memory_, 5), sge(memory_ + 100, 0), sge(memory_ + 200, 20)};
  wr_.opcode = IBV_WR_RDMA_WRITE;
  wr_.sg_list = sges;
  wr_.num_sge = 2;
  EXPECT_EQ(carried_by(wr_), std::string(memory_, 5));
  std::swap(sges[1], sges[2]);
  EXPECT_EQ(carried_by(wr_), std::string(memory_, 5) + std::string(memory_ + 200, 20));
}

TEST_F(Carry, HasALimit) {
  sge_.length = abi::kMaxCarried;
  EXPECT_EQ(carried_by(wr_), std::string(memory_ + 3, abi::kMaxCarried));
  sge_.length = abi::kMaxCarried + 1;
  EXPECT_EQ(carried_by(wr_), "");
  ibv_sge sges[] = {sge(memory_, abi::kMaxCarried), sge(memory_, 1)};
  wr_.sg_list = sges;
  wr_.num_sge = 2;
  EXPECT_EQ(carried_by(wr_), "");
}

TEST_F(Carry, ExcludesEmptyMessages) {
  wr_.num_sge = 0;
  EXPECT_EQ(carried_by(wr_), "");
}

// IBTA vol 1, 10.8.3.3: a READ before the request may still be writing to the buffer.
TEST_F(Carry, ExcludesRequestsWithAFence) {
  wr_.send_flags = IBV_SEND_FENCE;
  EXPECT_EQ(carried_by(wr_), "");
}

TEST_F(Carry, ExcludesReads) {
  wr_.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(carried_by(wr_), "");
}

// The daemon must check the region, and complete a request beyond it with an error, so nothing is
// copied.
TEST_F(Carry, ExcludesMemoryOutsideARegion) {
  sge_.addr = reinterpret_cast<uint64_t>(memory_) - 1;
  EXPECT_EQ(carried_by(wr_), "");
  sge_ = sge(memory_ + sizeof(memory_) - 12, 13);
  EXPECT_EQ(carried_by(wr_), "");
  sge_ = sge(memory_, 13);
  sge_.lkey ^= 1;
  EXPECT_EQ(carried_by(wr_), "");
  sge_.lkey ^= 0x101;
  EXPECT_EQ(carried_by(wr_), "");
}

TEST_F(Carry, ExcludesMemoryThatIsNotMapped) {
  auto* pages = static_cast<char*>(
      mmap(nullptr, 3 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  enter(pages, 3 * kPageSize);
  munmap(pages + kPageSize, kPageSize);
  errno = 0;
  sge_ = sge(pages + kPageSize - 4, 8);
  EXPECT_EQ(carried_by(wr_), "") << "its end";
  sge_ = sge(pages + 2 * kPageSize - 4, 8);
  EXPECT_EQ(carried_by(wr_), "") << "its beginning";
  sge_ = sge(pages + kPageSize - 8, 8);
  EXPECT_EQ(carried_by(wr_), std::string(8, 0)) << "up to the hole";
  sge_ = sge(pages + 2 * kPageSize, 1);
  EXPECT_EQ(carried_by(wr_), std::string(1, 0)) << "behind it";
  mprotect(pages, kPageSize, PROT_NONE);
  sge_ = sge(pages, 1);
  EXPECT_EQ(carried_by(wr_), "");
  EXPECT_EQ(errno, 0) << "nobody is told";
  munmap(pages, kPageSize);
  munmap(pages + 2 * kPageSize, kPageSize);
}

// ibv_wr_post(3)
TEST_F(Carry, IncludesTheDataOfRequestsThatAreBuilt) {
  install_work_request_builder(queues_.qp.get(), IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(&queues_.qp->verbs.qp);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_sge(ex, kLkey, reinterpret_cast<uint64_t>(memory_), 9);
  ex->wr_flags = IBV_SEND_FENCE;
  ibv_wr_rdma_write(ex, 1, 2);
  ibv_wr_set_sge(ex, kLkey, reinterpret_cast<uint64_t>(memory_), 9);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(queues_.send_wqe(0).inline_size, 9u);
  EXPECT_EQ(memcmp(queues_.send_slot(0) + sizeof(abi::SendWqe) + sizeof(abi::Sge), memory_, 9), 0);
  EXPECT_EQ(queues_.send_wqe(1).inline_size, 0u);
}

// ---- Data in a slot ----

class CarryInASlot : public Carry {
 protected:
  static constexpr uint32_t kLength = 400;

  CarryInASlot() { sge_ = sge(memory_ + 3, kLength); }

  /// Posts the request, and returns the slot that its WQE names, or 0.
  uint32_t slot_of(ibv_send_wr wr) {
    ibv_send_wr* bad;
    const auto index = static_cast<uint32_t>(queue().posted);
    EXPECT_EQ(post_send(queues_.qp_base(), &wr, &bad), 0);
    EXPECT_EQ(queues_.send_wqe(index).inline_size, 0u);
    return queues_.send_wqe(index).slot;
  }
  std::string in_slot(uint32_t slot, size_t size) const {
    return {reinterpret_cast<const char*>(queues_.payload->sent.bytes[slot - 1]), size};
  }
  void finish_all() {
    queues_.complete(queues_.completion(1, static_cast<uint32_t>(queue().posted)));
    ibv_wc wc;
    EXPECT_EQ(poll_cq(queues_.cq_base(), 1, &wc), 1);
  }
  size_t free_slots() {
    std::vector<uint32_t> taken;
    while (const uint32_t slot = queues_.parts().free_send_slots.take()) taken.push_back(slot);
    for (const uint32_t slot : taken) queues_.parts().free_send_slots.give_back(slot);
    return taken.size();
  }
  WorkQueue& queue() { return queues_.qp->send; }
};

TEST_F(CarryInASlot, IncludesAMessageThatIsTooLongForTheWqe) {
  const uint32_t slot = slot_of(wr_);
  ASSERT_NE(slot, 0u);
  EXPECT_EQ(in_slot(slot, kLength), std::string(memory_ + 3, kLength));
  ibv_sge sges[] = {sge(memory_, 200), sge(memory_ + 300, 100)};
  wr_.sg_list = sges;
  wr_.num_sge = 2;
  wr_.opcode = IBV_WR_RDMA_WRITE;
  const uint32_t next = slot_of(wr_);
  ASSERT_NE(next, 0u);
  EXPECT_NE(next, slot);
  EXPECT_EQ(in_slot(next, 300), std::string(memory_, 200) + std::string(memory_ + 300, 100));
}

TEST_F(CarryInASlot, HasALimit) {
  std::vector<char> longer(abi::SendSlots::kMaxBytes + 1, 'x');
  enter(longer.data(), longer.size());
  sge_ = sge(longer.data(), abi::SendSlots::kMaxBytes);
  EXPECT_NE(slot_of(wr_), 0u);
  ++sge_.length;
  EXPECT_EQ(slot_of(wr_), 0u);
}

TEST_F(CarryInASlot, FreesTheSlotWhenTheCompletionIsPolled) {
  const size_t all = abi::SendSlots::kCount;
  slot_of(wr_);
  slot_of(wr_);
  EXPECT_EQ(free_slots(), all - 2);
  queues_.complete(queues_.completion(1, static_cast<uint32_t>(queue().posted)));
  EXPECT_EQ(free_slots(), all - 2) << "a completion that nobody has polled may still be repeated";
  ibv_wc wc;
  EXPECT_EQ(poll_cq(queues_.cq_base(), 1, &wc), 1) << "of the latter, and so of both";
  EXPECT_EQ(free_slots(), all);
}

TEST_F(CarryInASlot, NeedsAFreeSlot) {
  std::vector<uint32_t> taken;
  while (const uint32_t slot = queues_.parts().free_send_slots.take()) taken.push_back(slot);
  EXPECT_EQ(taken.size(), abi::SendSlots::kCount);
  EXPECT_EQ(slot_of(wr_), 0u);
  queues_.parts().free_send_slots.give_back(taken[100]);
  EXPECT_EQ(slot_of(wr_), taken[100]);
  finish_all();
  EXPECT_EQ(slot_of(wr_), taken[100]);
}

TEST_F(CarryInASlot, ExcludesMemoryThatIsNotMapped) {
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  enter(pages, 2 * kPageSize);
  munmap(pages + kPageSize, kPageSize);
  sge_ = sge(pages + kPageSize - 200, 400);
  EXPECT_EQ(slot_of(wr_), 0u);
  EXPECT_EQ(free_slots(), abi::SendSlots::kCount);
  munmap(pages, kPageSize);
}

// The slot of a request cannot be read from its WQE: the daemon may already have given the memory
// of the queue to another QP, and the WQE of a bind has the number of its window in this place.
TEST_F(CarryInASlot, IsKnownWithoutAReadOfTheQueue) {
  const uint32_t slot = slot_of(wr_);
  slot_of(wr_);
  for (uint32_t index = 0; index < 4; ++index) {
    abi::SendWqe of_another{};
    of_another.slot = slot + 7 + index;
    memcpy(queue().slot(index), &of_another, sizeof of_another);
  }
  release_slots(queues_.parts(), queue(), 0, 3);
  EXPECT_EQ(free_slots(), abi::SendSlots::kCount);
  EXPECT_EQ(queue().in_slots, 0u);
  release_slots(queues_.parts(), queue(), 0, 3);
  EXPECT_EQ(queue().in_slots, 0u) << "once";
}

class CarryOfABuilder : public CarryInASlot {
 protected:
  CarryOfABuilder() {
    install_work_request_builder(queues_.qp.get(), IBV_QP_EX_WITH_SEND);
    ex_ = ibv_qp_to_qp_ex(&queues_.qp->verbs.qp);
    ibv_wr_start(ex_);
    build();
  }
  void build() {
    ibv_wr_send(ex_);
    ibv_wr_set_sge(ex_, kLkey, reinterpret_cast<uint64_t>(memory_), kLength);
  }

  ibv_qp_ex* ex_;
};

TEST_F(CarryOfABuilder, WorksAsForAPost) {
  build();
  ASSERT_EQ(ibv_wr_complete(ex_), 0);
  for (const uint32_t index : {0u, 1u}) {
    const uint32_t slot = queues_.send_wqe(index).slot;
    ASSERT_NE(slot, 0u);
    EXPECT_EQ(in_slot(slot, kLength), std::string(memory_, kLength));
  }
  finish_all();
  EXPECT_EQ(free_slots(), abi::SendSlots::kCount);
}

TEST_F(CarryOfABuilder, EndsWithASessionThatIsAborted) {
  build();
  ibv_wr_abort(ex_);
  EXPECT_EQ(free_slots(), abi::SendSlots::kCount);
  EXPECT_EQ(queue().in_slots, 0u);
}

TEST_F(CarryOfABuilder, EndsWithASessionThatFails) {
  build();
  ibv_wr_set_sge(ex_, kLkey, reinterpret_cast<uint64_t>(memory_), kLength);  // a second time
  build();
  EXPECT_EQ(ibv_wr_complete(ex_), EINVAL);
  EXPECT_EQ(free_slots(), abi::SendSlots::kCount);
  EXPECT_EQ(queue().in_slots, 0u);
}

}  // namespace
}  // namespace rocemu::provider
