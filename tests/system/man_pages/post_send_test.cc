// Tests ibv_post_send(3): the table of opcodes and QP Transport Service Types, and the flags.
#include <endian.h>
#include <fcntl.h>

#include <map>
#include <set>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

const std::set<ibv_wr_opcode> kAllOpcodes = {IBV_WR_RDMA_WRITE,
                                             IBV_WR_RDMA_WRITE_WITH_IMM,
                                             IBV_WR_SEND,
                                             IBV_WR_SEND_WITH_IMM,
                                             IBV_WR_RDMA_READ,
                                             IBV_WR_ATOMIC_CMP_AND_SWP,
                                             IBV_WR_ATOMIC_FETCH_AND_ADD,
                                             IBV_WR_LOCAL_INV,
                                             IBV_WR_BIND_MW,
                                             IBV_WR_SEND_WITH_INV,
                                             IBV_WR_TSO,
                                             IBV_WR_DRIVER1,
                                             IBV_WR_ATOMIC_WRITE};

const std::set<ibv_wr_opcode> kUdOpcodes = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

/// The page's table also has SEND_WITH_INV for UC, but the wire format has no opcode for it: IBTA
/// vol 1, table "OpCode field".
const std::set<ibv_wr_opcode> kUcOpcodes = {IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                            IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                            IBV_WR_LOCAL_INV,  IBV_WR_BIND_MW};

const std::set<ibv_wr_opcode> kXrcSendOpcodes = {IBV_WR_SEND,
                                                 IBV_WR_SEND_WITH_IMM,
                                                 IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_LOCAL_INV,
                                                 IBV_WR_BIND_MW,
                                                 IBV_WR_SEND_WITH_INV,
                                                 IBV_WR_RDMA_READ,
                                                 IBV_WR_ATOMIC_CMP_AND_SWP,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};

/// Returns the table's opcodes for RC, and ATOMIC WRITE, which the page does not have yet.
std::set<ibv_wr_opcode> rc_opcodes() {
  std::set<ibv_wr_opcode> opcodes = kXrcSendOpcodes;
  opcodes.insert(IBV_WR_ATOMIC_WRITE);
  return opcodes;
}

class PostSendTable : public TransportTest {
 protected:
  /// Posts each opcode: "Each QP Transport Service Type supports a specific set of opcodes". The QP
  /// is its own peer and is brought to the error state after RTS, so that nothing is executed.
  void expect_opcodes(const QpWish& wish, const std::set<ibv_wr_opcode>& known) {
    QpPtr qp = make_qp(wish);
    ASSERT_NE(qp, nullptr);
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
    ASSERT_NO_FATAL_FAILURE(to_error(qp.get()));
    const AhPtr ah = make_ah();
    MwPtr window(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2));
    ASSERT_NE(window, nullptr);
    size_t accepted = 0;
    for (const ibv_wr_opcode opcode : kAllOpcodes) {
      ibv_send_wr wr = request(opcode, 1, 0, 8);
      if (wish.type == IBV_QPT_UD) wr.wr.ud.ah = ah.get();
      if (opcode == IBV_WR_BIND_MW) {
        wr.bind_mw.mw = window.get();
        wr.bind_mw.bind_info = {remote_mr.get(), reinterpret_cast<uint64_t>(slot(0)), 8, 0};
      }
      const int result = post(qp.get(), wr);
      EXPECT_EQ(result == 0, known.contains(opcode)) << "opcode " << opcode;
      if (result == 0) {
        ++accepted;
      } else {
        EXPECT_EQ(result, EINVAL) << "opcode " << opcode;
      }
    }
    for (const ibv_wc& wc : poll_for(cq.get(), accepted)) {
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
  }
};

TEST_F(PostSendTable, OfRc) {
  expect_opcodes({.type = IBV_QPT_RC}, rc_opcodes());
}

TEST_F(PostSendTable, OfUc) {
  expect_opcodes({.type = IBV_QPT_UC}, kUcOpcodes);
}

TEST_F(PostSendTable, OfUd) {
  expect_opcodes({.type = IBV_QPT_UD}, kUdOpcodes);
}

TEST_F(PostSendTable, OfXrcSend) {
  expect_opcodes({.type = IBV_QPT_XRC_SEND}, kXrcSendOpcodes);
}

TEST_F(PostSendTable, OfXrcRecvIsEmpty) {
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = -1;
  init.oflags = O_CREAT;
  XrcdPtr xrcd(ibv_open_xrcd(context.get(), &init));
  ASSERT_NE(xrcd, nullptr);
  expect_opcodes({.type = IBV_QPT_XRC_RECV, .xrcd = xrcd.get()}, {});
}

class PostSendRc : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    peer_cq = create_cq();
    qp = make_qp({});
    peer = make_qp({.cq = peer_cq.get()});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), peer.get()));
  }

  uint64_t remote(size_t index) { return reinterpret_cast<uint64_t>(slot(index)); }
  uint64_t& word(size_t index) { return *reinterpret_cast<uint64_t*>(slot(index)); }

  ibv_send_wr rdma(ibv_wr_opcode opcode, size_t to, uint32_t length = 16) {
    ibv_send_wr wr = request(opcode, 1, 0, length);
    wr.wr.rdma = {.remote_addr = remote(to), .rkey = remote_mr->rkey};
    return wr;
  }

  CqPtr peer_cq;
  QpPtr qp, peer;
};

// The tests below execute each opcode, and check its effect and its completions.
TEST_F(PostSendRc, SendWithImm) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, 1);
  wr.imm_data = htobe32(0xabcd);
  ASSERT_EQ(post(qp.get(), wr), 0);
  const ibv_wc sent = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  const ibv_wc received = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(be32toh(received.imm_data), 0xabcdu);
}

TEST_F(PostSendRc, RdmaWriteRdmaReadAndWriteWithImm) {
  std::strcpy(reinterpret_cast<char*>(slot(0)), "to and fro");
  ASSERT_EQ(post(qp.get(), rdma(IBV_WR_RDMA_WRITE, 3)), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(3)), "to and fro");
  std::memset(slot(0), 0, 16);
  ASSERT_EQ(post(qp.get(), rdma(IBV_WR_RDMA_READ, 3)), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).opcode, IBV_WC_RDMA_READ);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(0)), "to and fro");
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 4);
  wr.imm_data = htobe32(9);
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).opcode, IBV_WC_RDMA_WRITE);
  const ibv_wc received = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(be32toh(received.imm_data), 9u);
}

// The message's receive completes with the error of the R_Key. Later receives are flushed.
TEST_F(PostSendRc, RdmaWriteWithImmAndABadKeyFailsTheReceive) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_EQ(post_recv(peer.get(), 8), 0);
  ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 4);
  wr.wr.rdma.rkey ^= 0x100;
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_REM_ACCESS_ERR);
  const auto received = poll_for(peer_cq.get(), 2);
  EXPECT_EQ(received.at(0).wr_id, 7u);
  EXPECT_EQ(received.at(0).status, IBV_WC_LOC_ACCESS_ERR);
  EXPECT_EQ(received.at(1).status, IBV_WC_WR_FLUSH_ERR);
}

// As on NICs, the memory for the response is checked only when the response arrives.
TEST_F(PostSendRc, AnAtomicWhoseAnswerHasNoPlaceIsCarriedOut) {
  word(3) = 40;
  ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
  wr.wr.atomic = {remote(3), 2, 0, remote_mr->rkey};
  wr.sg_list->lkey ^= 0x100;
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(word(3), 42u);
}

TEST_F(PostSendRc, Atomics) {
  word(3) = 40;
  ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
  wr.wr.atomic = {remote(3), 2, 0, remote_mr->rkey};
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(word(0), 40u);
  EXPECT_EQ(word(3), 42u);
  wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, 8);
  wr.wr.atomic = {remote(3), 42, 7, remote_mr->rkey};
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(0), 42u);
  EXPECT_EQ(word(3), 7u);
}

TEST_F(PostSendRc, AtomicWrite) {
  word(0) = 0x1122334455667788;
  ASSERT_EQ(post(qp.get(), rdma(IBV_WR_ATOMIC_WRITE, 3, 8)), 0);
  const ibv_wc wc = poll_for(cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(3), 0x1122334455667788u);
}

// "IBV_SEND_SIGNALED: Set the completion notification indicator. Relevant only if QP was created
// with sq_sig_all=0"
TEST_F(PostSendRc, UnsignaledRequestsHaveNoCompletion) {
  ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE, 3);
  wr.wr_id = 1;
  wr.send_flags = 0;
  ASSERT_EQ(post(qp.get(), wr), 0);
  wr.wr_id = 2;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).wr_id, 2u);
}

// "IBV_SEND_INLINE: ... The L_Key will not be checked", and "the buffer can be reused immediately
// after the call returns"
TEST_F(PostSendRc, InlineDataIsTakenAtOnceAndWithoutKey) {
  char data[] = "inline";
  ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE, 3, sizeof(data));
  entry = {reinterpret_cast<uint64_t>(data), sizeof(data), 0xdeadbeef};
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ASSERT_EQ(post(qp.get(), wr), 0);
  std::memset(data, 0, sizeof(data));
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(3)), "inline");
  // IBV_SEND_INLINE: "Valid only for Send and RDMA Write."
  wr = rdma(IBV_WR_RDMA_READ, 3);
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(post(qp.get(), wr), EINVAL);
}

// "IBV_SEND_IP_CSUM: Valid only when device_cap_flags in device_attr indicates" it.
TEST_F(PostSendRc, ChecksumOffloadIsRefused) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_EQ(device.device_cap_flags & (IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM), 0u);
  ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE, 3);
  wr.send_flags = IBV_SEND_IP_CSUM;
  EXPECT_EQ(post(qp.get(), wr), EINVAL);
}

/// Posts requests by the calls of ibv_wr_post(3).
class WrPost : public TransportTest {
 protected:
  static constexpr uint64_t kOps =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE;

  void SetUp() override {
    TransportTest::SetUp();
    peer_cq = create_cq();
    qp = make_qp({.send_ops = kOps});
    peer = make_qp({.cq = peer_cq.get()});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), peer.get()));
    ex = ibv_qp_to_qp_ex(qp.get());
    ASSERT_NE(ex, nullptr);
    ex->wr_id = 5;
    ex->wr_flags = IBV_SEND_SIGNALED;
  }
  uint64_t remote(size_t index) { return reinterpret_cast<uint64_t>(slot(index)); }
  uint64_t& word(size_t index) { return *reinterpret_cast<uint64_t*>(slot(index)); }

  CqPtr peer_cq;
  QpPtr qp, peer;
  ibv_qp_ex* ex = nullptr;
};

TEST_F(WrPost, ExecutesABatchInOrder) {
  word(0) = 5;
  word(3) = 0;
  uint64_t value = 100;
  ibv_wr_start(ex);
  ibv_wr_atomic_write(ex, remote_mr->rkey, remote(3), &value);
  value = 0;
  ibv_wr_atomic_fetch_add(ex, remote_mr->rkey, remote(3), 11);
  ibv_wr_set_sge(ex, mr->lkey, remote(1), 8);
  ibv_wr_atomic_cmp_swp(ex, remote_mr->rkey, remote(3), 111, 222);
  ibv_wr_set_sge(ex, mr->lkey, remote(2), 8);
  ibv_wr_rdma_read(ex, remote_mr->rkey, remote(3));
  ibv_wr_set_sge(ex, mr->lkey, remote(4), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  const auto found = poll_for(cq.get(), 4);
  ASSERT_EQ(found.size(), 4u);
  const ibv_wc_opcode opcodes[] = {IBV_WC_ATOMIC_WRITE, IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP,
                                   IBV_WC_RDMA_READ};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(found[i].opcode, opcodes[i]);
    EXPECT_EQ(found[i].wr_id, 5u);
  }
  EXPECT_EQ(word(1), 100u);
  EXPECT_EQ(word(2), 111u);
  EXPECT_EQ(word(4), 222u);
}

TEST_F(WrPost, ScattersListsAndInlineData) {
  ASSERT_EQ(post_recv(peer.get(), 1), 0);
  ASSERT_EQ(post_recv(peer.get(), 2, 2), 0);
  char text[] = "inline ";
  const ibv_data_buf parts[] = {{text, 7}, {text, 8}};
  std::strcpy(reinterpret_cast<char*>(slot(4)), "list");
  const ibv_sge list[] = {sge(4, 4), sge(4, 5)};
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_inline_data_list(ex, 2, parts);
  ibv_wr_send_imm(ex, htobe32(3));
  ibv_wr_set_sge_list(ex, 2, list);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  const auto found = poll_for(peer_cq.get(), 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].byte_len, 15u);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(1)), "inline inline ");
  EXPECT_EQ(be32toh(found[1].imm_data), 3u);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(2)), "listlist");
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u);
}

// ibv_wr_post(3): "No work is executed to the queue until ibv_wr_complete() returns success", "the
// entire posting will be aborted".
TEST_F(WrPost, AFailedBatchLeavesTheQueueAsItWas) {
  word(0) = 5;
  word(3) = 0;
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, remote_mr->rkey, remote(3));
  ibv_wr_set_sge(ex, mr->lkey, remote(0), 8);
  ibv_wr_send_inv(ex, 1);  // the QP was created without this operation
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, remote_mr->rkey, remote(3));
  ibv_wr_set_sge(ex, mr->lkey, remote(0), 8);
  ibv_wr_abort(ex);
  ibv_wc wc;
  settle();
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
  EXPECT_EQ(word(3), 0u);
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, remote_mr->rkey, remote(3));
  ibv_wr_set_sge(ex, mr->lkey, remote(0), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(word(3), 5u);
}

// "If the QP does not support all the requested work request types then QP creation will fail."
TEST_F(WrPost, CreationFailsForOperationsThatTheTypeDoesNotHave) {
  for (const auto& [type, operations] :
       std::map<ibv_qp_type, uint64_t>{{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE},
                                       {IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ},
                                       {IBV_QPT_RC, IBV_QP_EX_WITH_TSO}}) {
    errno = 0;
    EXPECT_EQ(try_qp({.type = type, .send_ops = operations}), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

}  // namespace
}  // namespace rocemu::system_test
