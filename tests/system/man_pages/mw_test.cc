// Tests ibv_alloc_mw(3), ibv_bind_mw(3) and ibv_inc_rkey(3), sentence by sentence, and the opcodes
// of ibv_post_send(3) that bind and invalidate windows.
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class MwTest : public TransportTest {
 protected:
  /// Connects the window's owner, which binds and invalidates, to a peer, which reads and writes
  /// through the window.
  void SetUp() override {
    TransportTest::SetUp();
    peer_cq = create_cq();
    owner = make_qp({});
    peer = make_qp({.cq = peer_cq.get()});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(owner.get(), peer.get()));
  }

  MwPtr alloc(ibv_mw_type type) {
    MwPtr mw(ibv_alloc_mw(pd.get(), type));
    EXPECT_NE(mw, nullptr) << std::strerror(errno);
    return mw;
  }

  ibv_mw_bind_info part(size_t index, uint64_t length,
                        unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) {
    return {remote_mr.get(), reinterpret_cast<uint64_t>(slot(index)), length, access};
  }

  /// Binds a type 1 window, and waits for the completion. Returns its status.
  ibv_wc_status bind1(ibv_mw* mw, const ibv_mw_bind_info& info) {
    ibv_mw_bind bind{.wr_id = 50, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    EXPECT_EQ(ibv_bind_mw(owner.get(), mw, &bind), 0);
    const auto found = poll_for(cq.get(), 1);
    if (found.empty()) return IBV_WC_GENERAL_ERR;
    EXPECT_EQ(found[0].wr_id, 50u);
    if (found[0].status == IBV_WC_SUCCESS) {
      EXPECT_EQ(found[0].opcode, IBV_WC_BIND_MW);
    }
    return found[0].status;
  }

  ibv_wc_status bind2(ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info& info) {
    ibv_send_wr wr = request(IBV_WR_BIND_MW, 51);
    wr.num_sge = 0;
    wr.bind_mw = {mw, rkey, info};
    EXPECT_EQ(post(owner.get(), wr), 0);
    return next_status();
  }

  ibv_wc_status local_inv(uint32_t rkey) {
    ibv_send_wr wr = request(IBV_WR_LOCAL_INV, 52);
    wr.num_sge = 0;
    wr.invalidate_rkey = rkey;
    EXPECT_EQ(post(owner.get(), wr), 0);
    const auto found = poll_for(cq.get(), 1);
    if (!found.empty() && found[0].status == IBV_WC_SUCCESS) {
      EXPECT_EQ(found[0].opcode, IBV_WC_LOCAL_INV);
    }
    return found.empty() ? IBV_WC_GENERAL_ERR : found[0].status;
  }

  /// Reads or writes 16 bytes from the peer, at `address` or at `offset` in a slot. Returns the
  /// status.
  ibv_wc_status access(ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
    ibv_send_wr wr = request(opcode, 60, 9);
    wr.wr.rdma = {.remote_addr = address, .rkey = rkey};
    EXPECT_EQ(post(peer.get(), wr), 0);
    return next_status(peer_cq.get());
  }
  ibv_wc_status write(uint32_t rkey, size_t index, uint64_t offset = 0) {
    return access(IBV_WR_RDMA_WRITE, rkey, reinterpret_cast<uint64_t>(slot(index)) + offset);
  }

  CqPtr peer_cq;
  QpPtr owner, peer;
};

// "The MW's type (1 or 2A/2B) is type", "or NULL if the request fails".
TEST_F(MwTest, AllocGivesWindowsOfBothTypes) {
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    const MwPtr mw = alloc(type);
    EXPECT_EQ(mw->type, type);
    EXPECT_EQ(mw->pd, pd.get());
    EXPECT_EQ(mw->context, context.get());
  }
  errno = 0;
  EXPECT_EQ(ibv_alloc_mw(pd.get(), static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// "The MW is created not bound."
TEST_F(MwTest, AnUnboundWindowAllowsNothing) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

// "Once bound, the memory window allows RDMA (remote) access to a subset of the MR", and "In case
// of a success, the R_key of the memory window after the bind is returned".
TEST_F(MwTest, ABoundWindowAllowsAccessToItsPart) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  const uint32_t before = mw->rkey;
  ASSERT_EQ(bind1(mw.get(), part(1, 64)), IBV_WC_SUCCESS);
  EXPECT_NE(mw->rkey, before);
  std::strcpy(reinterpret_cast<char*>(slot(9)), "through");
  EXPECT_EQ(write(mw->rkey, 1, 48), IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(1) + 48), "through");
  std::memset(slot(9), 0, 16);
  EXPECT_EQ(access(IBV_WR_RDMA_READ, mw->rkey, reinterpret_cast<uint64_t>(slot(1)) + 48),
            IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(9)), "through");
  EXPECT_EQ(write(mw->rkey, 1, 49), IBV_WC_REM_ACCESS_ERR) << "one byte beyond";
}

// "The mw_access_flags define the allowed access to the MW".
TEST_F(MwTest, OnlyTheAccessThatItWasBoundWith) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(bind1(mw.get(), part(1, 64, IBV_ACCESS_REMOTE_READ)), IBV_WC_SUCCESS);
  EXPECT_EQ(access(IBV_WR_RDMA_READ, mw->rkey, reinterpret_cast<uint64_t>(slot(1))),
            IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

// "IBV_ACCESS_ZERO_BASED: If set, the address set on the 'remote_addr' field on the WR will be an
// offset from the MW's start address."
TEST_F(MwTest, AZeroBasedWindowBeginsAtZero) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind2(mw.get(), rkey, part(1, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)),
            IBV_WC_SUCCESS);
  std::strcpy(reinterpret_cast<char*>(slot(9)), "offset");
  EXPECT_EQ(access(IBV_WR_RDMA_WRITE, rkey, 8), IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(1) + 8), "offset");
}

// IBTA vol 1, o10-36.2.2: a type 1 window is never zero-based. The man page does not say so, but
// mlx5_bind_mw() and rxe_bind_mw() in rdma-core return EINVAL for the flag, whatever the length,
// and the other ways to bind do not accept type 1 windows at all.
TEST_F(MwTest, AType1WindowCannotBeZeroBased) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  const uint32_t before = mw->rkey;
  ibv_mw_bind bind{.wr_id = 50, .send_flags = IBV_SEND_SIGNALED, .bind_info = {}};
  for (const uint64_t length : {uint64_t{64}, uint64_t{0}}) {
    bind.bind_info = part(1, length, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    EXPECT_EQ(ibv_bind_mw(owner.get(), mw.get(), &bind), EINVAL) << length;
  }
  EXPECT_EQ(mw->rkey, before);
  EXPECT_EQ(bind1(mw.get(), part(1, 64)), IBV_WC_SUCCESS) << "nothing was posted before";
}

// "This key will be changed during bind operations": after a bind, the old key is not valid any
// more.
TEST_F(MwTest, ARebindEndsTheOldKey) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(bind1(mw.get(), part(1, 64)), IBV_WC_SUCCESS);
  const uint32_t old = mw->rkey;
  ASSERT_EQ(bind1(mw.get(), part(2, 64)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(write(old, 1), IBV_WC_REM_ACCESS_ERR);
}

// "until invalidated by: ibv_bind_mw verb with zero length for type 1"
TEST_F(MwTest, BindingZeroLengthUnbindsType1) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(bind1(mw.get(), part(1, 64)), IBV_WC_SUCCESS);
  ASSERT_EQ(bind1(mw.get(), {}), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

// "IBV_WR_LOCAL_INV/IBV_WR_SEND_WITH_INV WR opcode for type 2"
TEST_F(MwTest, LocalInvalidationUnbindsType2) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind2(mw.get(), rkey, part(1, 64)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(rkey, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(local_inv(rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write(rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, ThePeersSendInvalidatesType2) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind2(mw.get(), rkey, part(1, 64)), IBV_WC_SUCCESS);
  ASSERT_EQ(post_recv(owner.get(), 70, 2), 0);
  ibv_send_wr wr = request(IBV_WR_SEND_WITH_INV, 71, 9);
  wr.invalidate_rkey = rkey;
  ASSERT_EQ(post(peer.get(), wr), 0);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS);
  // ibv_poll_cq(3): "IBV_WC_WITH_INV: ... the invalidated rkey"
  const ibv_wc wc = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_INV, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(wc.invalidated_rkey, rkey);
  EXPECT_EQ(write(rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

// "ibv_dealloc_mw() unbinds in case was previously bound", "ibv_dereg_mr() fails if any memory
// window is still bound to this MR."
TEST_F(MwTest, ARegionStaysWhileAWindowIsBoundToIt) {
  MwPtr mw = alloc(IBV_MW_TYPE_1);
  MrPtr region(ibv_reg_mr(pd.get(), slot(1), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
  ibv_mw_bind_info info = part(1, 64, IBV_ACCESS_REMOTE_READ);
  info.mr = region.get();
  ASSERT_EQ(bind1(mw.get(), info), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region.get()), EBUSY);
  mw.reset();
  region.reset();  // fails the test unless ibv_dereg_mr(3) succeeds
}

// "REMOTE_WRITE: Requires local write access to the MR", and the MR must allow windows.
TEST_F(MwTest, TheRegionMustAllowTheBind) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  MrPtr read_only(ibv_reg_mr(pd.get(), slot(1), kSlot, IBV_ACCESS_MW_BIND));
  ibv_mw_bind_info info = part(1, 64, IBV_ACCESS_REMOTE_WRITE);
  info.mr = read_only.get();
  EXPECT_EQ(bind1(mw.get(), info), IBV_WC_MW_BIND_ERR);
}

TEST_F(MwTest, ARegionThatAllowsNoWindowsRefusesThem) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  ibv_mw_bind_info info = part(1, 64, IBV_ACCESS_REMOTE_READ);
  info.mr = mr.get();
  EXPECT_EQ(bind1(mw.get(), info), IBV_WC_MW_BIND_ERR);
}

// "The QP Transport Service Type must be either UC, RC or XRC_SEND for bind operations."
TEST_F(MwTest, UdQpsBindNothing) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  const uint32_t before = mw->rkey;
  QpPtr ud = make_qp({.type = IBV_QPT_UD});
  ASSERT_NO_FATAL_FAILURE(bring_up(ud.get()));
  ibv_mw_bind bind{.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = part(1, 64)};
  EXPECT_EQ(ibv_bind_mw(ud.get(), mw.get(), &bind), EINVAL);
  EXPECT_EQ(mw->rkey, before);
}

// "for type 2 MW, one should directly post bind WR to the QP, using ibv_post_send"
TEST_F(MwTest, EachTypeHasItsOwnWayOfBinding) {
  const MwPtr one = alloc(IBV_MW_TYPE_1), two = alloc(IBV_MW_TYPE_2);
  ibv_mw_bind bind{.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = part(1, 64)};
  EXPECT_EQ(ibv_bind_mw(owner.get(), two.get(), &bind), EINVAL);
  ibv_send_wr wr = request(IBV_WR_BIND_MW, 51);
  wr.num_sge = 0;
  wr.bind_mw = {one.get(), ibv_inc_rkey(one->rkey), part(1, 64)};
  EXPECT_EQ(post(owner.get(), wr), EINVAL);
}

// "The user may safely send the R_key using a send request on the same QP, (based on QP ordering
// rules: a send after a bind request on the same QP are always ordered)"
TEST_F(MwTest, ASendBehindABindFindsItDone) {
  const MwPtr mw = alloc(IBV_MW_TYPE_1);
  ibv_mw_bind bind{.wr_id = 1, .send_flags = 0, .bind_info = part(1, 64)};
  ASSERT_EQ(post_recv(peer.get(), 2, 3), 0);
  ASSERT_EQ(ibv_bind_mw(owner.get(), mw.get(), &bind), 0);
  ASSERT_EQ(post_send(owner.get(), 3), 0);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

// ---- Who chooses the key of a type 2 window ----------------------------------------------------
// ibv_inc_rkey(3): "Increases the 8 LSB of rkey and returns the new value", "different ... on its
// tag part but has the same index (bits 0xffffff00)". So the program chooses the tag, and the
// device the index. mlx5, irdma and rxe use only the low 8 bits of ibv_send_wr::bind_mw.rkey, and
// set ibv_mw::rkey when the bind is posted.

/// Returns the key that a window has after a bind with `rkey`.
uint32_t key_after(uint32_t before, uint32_t rkey) {
  return (before & 0xffffff00) | (rkey & 0xff);
}

TEST_F(MwTest, OnlyTheLow8BitsOfABindsKeyAreTheConsumers) {
  for (const uint32_t others : {0u, 0xffffff00u, 0x00000100u, 0x12345600u}) {
    const MwPtr mw = alloc(IBV_MW_TYPE_2);
    const uint32_t before = mw->rkey;
    const uint32_t wanted = others | ((before + 1) & 0xff);
    ASSERT_EQ(bind2(mw.get(), wanted, part(1, 64)), IBV_WC_SUCCESS) << std::hex << others;
    EXPECT_EQ(mw->rkey, key_after(before, wanted));
    EXPECT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS);
    EXPECT_EQ(local_inv(mw->rkey), IBV_WC_SUCCESS);
  }
}

TEST_F(MwTest, AType2WindowHasItsNewKeyWhenTheBindIsPosted) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t before = mw->rkey;
  ibv_send_wr wr = request(IBV_WR_BIND_MW, 51);
  wr.num_sge = 0;
  wr.bind_mw = {mw.get(), ibv_inc_rkey(before), part(1, 64)};
  ASSERT_EQ(post(owner.get(), wr), 0);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(before));
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS);
}

TEST_F(MwTest, ABuilderGivesTheNewKeyWhenItsSessionCompletes) {
  QpPtr builder = make_qp({.send_ops = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV});
  QpPtr user = make_qp({.cq = peer_cq.get()});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(builder.get(), user.get()));
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t before = mw->rkey;
  const ibv_mw_bind_info info = part(1, 64);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(builder.get());
  ex->wr_id = 51;
  ex->wr_flags = IBV_SEND_SIGNALED;
  const auto bind = [&](uint32_t rkey) {
    ibv_wr_start(ex);
    ibv_wr_bind_mw(ex, mw.get(), rkey, &info);
  };
  bind(before + 1);
  ibv_wr_abort(ex);
  EXPECT_EQ(mw->rkey, before) << "nothing was posted";
  bind((before + 2) & 0xff);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(mw->rkey, key_after(before, before + 2));
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 60, 9);
  wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(1)), .rkey = mw->rkey};
  ASSERT_EQ(post(user.get(), wr), 0);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS);
}

// Binds and invalidates a type 2 window in turn, more often than there are tags.
TEST_F(MwTest, AWindowIsBoundAndInvalidatedAgainAndAgain) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  for (int i = 0; i < 300; ++i) {
    const uint32_t old = mw->rkey;
    ASSERT_EQ(bind2(mw.get(), (old + 1) & 0xff, part(1, 64)), IBV_WC_SUCCESS) << i;
    ASSERT_EQ(mw->rkey, ibv_inc_rkey(old));
    ASSERT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS) << i;
    if (i % 2 == 0) {
      ASSERT_EQ(local_inv(mw->rkey), IBV_WC_SUCCESS) << i;
      continue;
    }
    ASSERT_EQ(post_recv(owner.get(), 70, 2), 0);
    ibv_send_wr wr = request(IBV_WR_SEND_WITH_INV, 71, 9);
    wr.invalidate_rkey = mw->rkey;
    ASSERT_EQ(post(peer.get(), wr), 0);
    ASSERT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS) << i;
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS) << i;
  }
}

TEST_F(MwTest, BindsAndInvalidatesOfOneListAreDoneInOrder) {
  constexpr int kTimes = 8;
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t before = mw->rkey;
  std::array<ibv_send_wr, 2 * kTimes + 1> list;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto tag = static_cast<uint32_t>(i / 2 + 1);
    list[i] = request(i % 2 == 0 ? IBV_WR_BIND_MW : IBV_WR_LOCAL_INV, i);
    list[i].num_sge = 0;
    if (i % 2 == 0) {
      list[i].bind_mw = {mw.get(), (before + tag) & 0xff, part(1, 64)};
    } else {
      list[i].invalidate_rkey = key_after(before, before + tag);
    }
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(owner.get(), list.data(), &bad), 0);
  EXPECT_EQ(mw->rkey, key_after(before, before + kTimes + 1));
  for (const ibv_wc& wc : poll_for(cq.get(), list.size())) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
  }
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(write(key_after(before, before + kTimes), 1), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, ABindThatWasNotPostedLeavesTheKey) {
  const MwPtr one = alloc(IBV_MW_TYPE_2), two = alloc(IBV_MW_TYPE_2);
  const uint32_t before_one = one->rkey, before_two = two->rkey;
  ibv_send_wr second = request(IBV_WR_BIND_MW, 2);
  second.num_sge = 100;  // more SGEs than the QP allows
  second.bind_mw = {two.get(), before_two + 1, part(2, 64)};
  ibv_send_wr first = request(IBV_WR_BIND_MW, 1);
  first.num_sge = 0;
  first.bind_mw = {one.get(), before_one + 1, part(1, 64)};
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(owner.get(), &first, &bad), EINVAL);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(one->rkey, key_after(before_one, before_one + 1));
  EXPECT_EQ(two->rkey, before_two);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

/// Resets the QP and connects it again, from any state.
void reset(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

// After a failed bind, ibv_mw::rkey has a key that was never valid. The next bind can use it
// nevertheless, since only its low 8 bits count.
TEST_F(MwTest, AWindowCanBeBoundAfterABindThatFailedOrWasFlushed) {
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  EXPECT_EQ(bind2(mw.get(), ibv_inc_rkey(mw->rkey), part(1, sizeof(memory) + (1u << 30))),
            IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(bind2(mw.get(), ibv_inc_rkey(mw->rkey), part(1, 64)), IBV_WC_WR_FLUSH_ERR);
  for (ibv_qp* qp : {owner.get(), peer.get()}) ASSERT_NO_FATAL_FAILURE(reset(qp));
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(owner.get(), peer.get()));
  EXPECT_EQ(bind2(mw.get(), ibv_inc_rkey(mw->rkey), part(1, 64)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mw->rkey, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(local_inv(mw->rkey), IBV_WC_SUCCESS);
}

// A bound type 2 window must be invalidated before it is bound again (IBTA vol 1, o10-37.2.30).
// Until then the key of the successful bind is valid, even if later binds fail.
TEST_F(MwTest, ABoundWindowKeepsItsKeyWhenAnotherBindFails) {
  QpPtr other = make_qp({}), other_peer = make_qp({.cq = peer_cq.get()});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(other.get(), other_peer.get()));
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(bind2(mw.get(), ibv_inc_rkey(mw->rkey), part(1, 64)), IBV_WC_SUCCESS);
  const uint32_t good = mw->rkey;
  ibv_send_wr wr = request(IBV_WR_BIND_MW, 51);
  wr.num_sge = 0;
  wr.bind_mw = {mw.get(), ibv_inc_rkey(good), part(1, 64)};
  ASSERT_EQ(post(other.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(write(good, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(write(ibv_inc_rkey(good), 1), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, AnUnreliableConnectionsWindowTakesTheLow8BitsToo) {
  QpPtr uc = make_qp({.type = IBV_QPT_UC}), uc_peer = make_qp({.type = IBV_QPT_UC});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(uc.get(), uc_peer.get()));
  const MwPtr mw = alloc(IBV_MW_TYPE_2);
  const uint32_t before = mw->rkey;
  ibv_send_wr wr = request(IBV_WR_BIND_MW, 51);
  wr.num_sge = 0;
  wr.bind_mw = {mw.get(), (before + 1) & 0xff, part(1, 64)};
  ASSERT_EQ(post(uc.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, 52, 9);
  wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(1)), .rkey = mw->rkey};
  ASSERT_EQ(post_recv(uc.get(), 53, 2), 0);
  ASSERT_EQ(post(uc_peer.get(), wr), 0);
  for (const ibv_wc& wc : poll_for(cq.get(), 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace rocemu::system_test
