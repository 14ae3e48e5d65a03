// Tests ibv_alloc_null_mr(3), sentence by sentence.
#include <algorithm>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class NullMr : public ConnectedTest {
 protected:
  void SetUp() override {
    ConnectedTest::SetUp();
    null.reset(ibv_alloc_null_mr(pd.get()));
    ASSERT_NE(null, nullptr) << std::strerror(errno);
    std::fill(slot(0), slot(2), uint8_t{0xa5});
  }

  ibv_sge null_sge(uint32_t length, uint64_t address = 0x1234) {
    return {address, length, null->lkey};
  }

  int send(std::vector<ibv_sge> list) {
    ibv_send_wr wr{};
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(sender.get(), &wr, &bad);
  }
  int receive(std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(receiver.get(), &wr, &bad);
  }

  MrPtr null;
};

// "It has the maximum length and only the lkey is valid, the MR is not exposed as an rkey."
TEST_F(NullMr, HasTheMaximumLengthAndOnlyAnLkey) {
  EXPECT_EQ(null->length, SIZE_MAX);
  EXPECT_EQ(null->addr, nullptr);
  EXPECT_EQ(null->pd, pd.get());
  EXPECT_EQ(null->context, context.get());
  EXPECT_NE(null->lkey, 0u);
  EXPECT_EQ(null->rkey, 0u);
}

// "always returns 0 on read": also if the list has other regions before and after it.
TEST_F(NullMr, ReadsAsZeros) {
  ASSERT_EQ(receive({sge(1, 100)}), 0);
  ASSERT_EQ(send({sge(0, 10), null_sge(20), sge(0, 10)}), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).byte_len, 40u);
  const uint8_t* got = slot(1);
  EXPECT_TRUE(std::all_of(got, got + 10, [](uint8_t byte) { return byte == 0xa5; }));
  EXPECT_TRUE(std::all_of(got + 10, got + 30, [](uint8_t byte) { return byte == 0; }));
  EXPECT_TRUE(std::all_of(got + 30, got + 40, [](uint8_t byte) { return byte == 0xa5; }));
}

// "discards all data written to it"
TEST_F(NullMr, DiscardsWhatIsWritten) {
  std::fill(slot(1), slot(2), uint8_t{0});
  ASSERT_EQ(receive({sge(1, 10), null_sge(5000, ~uint64_t{0} - 10'000), sge(1, 0)}), 0);
  ASSERT_EQ(send({sge(0, 5010)}), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).byte_len, 5010u);
  EXPECT_EQ(slot(1)[9], 0xa5);
  EXPECT_EQ(slot(1)[10], 0);
}

// "associated with the protection domain pd"
TEST_F(NullMr, OfAnotherPdIsNotForThisQp) {
  const PdPtr other(ibv_alloc_pd(context.get()));
  null.reset(ibv_alloc_null_mr(other.get()));
  ASSERT_NE(null, nullptr);
  ASSERT_EQ(send({null_sge(8)}), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY);
  null.reset();
}

// "ibv_dereg_mr() deregisters the MR."
TEST_F(NullMr, CanBeDeregistered) {
  const uint32_t lkey = null->lkey;
  null.reset();
  ASSERT_EQ(send({{0, 8, lkey}}), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_LOC_PROT_ERR);
}

// "The use of ibv_rereg_mr() ... with this MR is invalid."
TEST_F(NullMr, CannotBeReregistered) {
  EXPECT_EQ(ibv_rereg_mr(null.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(null.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(0), 8, 0),
            IBV_REREG_MR_ERR_INPUT);
}

}  // namespace
}  // namespace rocemu::system_test
