// Tests one program on many NICs:
//
//   rocemu run --profile all -- ./profile_test
//
// The sender requests 256 bytes of inline data, which not every NIC has.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace {

constexpr uint32_t kInlineBytes = 256;

using Context = std::unique_ptr<ibv_context, decltype(&ibv_close_device)>;
using Pd = std::unique_ptr<ibv_pd, decltype(&ibv_dealloc_pd)>;
using Cq = std::unique_ptr<ibv_cq, decltype(&ibv_destroy_cq)>;
using Qp = std::unique_ptr<ibv_qp, decltype(&ibv_destroy_qp)>;
using Mr = std::unique_ptr<ibv_mr, decltype(&ibv_dereg_mr)>;

Context open_first_device() {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ibv_context* const context =
      devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (devices != nullptr) ibv_free_device_list(devices);
  return {context, ibv_close_device};
}

/// Connects two QPs of one port to each other. Returns whether that succeeded.
bool connect(ibv_qp* qp, ibv_qp* peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer->qp_num;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.port_num = 1;
  if (ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid) != 0) return false;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

TEST(Sender, SendsShortMessagesInline) {
  const Context context = open_first_device();
  ASSERT_TRUE(context);
  const Pd pd(ibv_alloc_pd(context.get()), ibv_dealloc_pd);
  const Cq cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0), ibv_destroy_cq);
  std::array<char, kInlineBytes> received{};
  const Mr mr(ibv_reg_mr(pd.get(), received.data(), received.size(), IBV_ACCESS_LOCAL_WRITE),
              ibv_dereg_mr);
  ASSERT_TRUE(pd && cq && mr);

  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = cq.get();
  wanted.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kInlineBytes};
  const Qp sender(ibv_create_qp(pd.get(), &wanted), ibv_destroy_qp);
  ASSERT_TRUE(sender) << "ibv_create_qp: " << strerror(errno);
  wanted.cap.max_inline_data = 0;
  const Qp receiver(ibv_create_qp(pd.get(), &wanted), ibv_destroy_qp);
  ASSERT_TRUE(receiver) << "ibv_create_qp: " << strerror(errno);
  ASSERT_TRUE(connect(sender.get(), receiver.get()) && connect(receiver.get(), sender.get()));

  ibv_sge into = {reinterpret_cast<uintptr_t>(received.data()), kInlineBytes, mr->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &into;
  receive.num_sge = 1;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(receiver.get(), &receive, &bad_receive), 0);
  std::array<char, kInlineBytes> message;
  message.fill('m');
  ibv_sge from = {reinterpret_cast<uintptr_t>(message.data()), kInlineBytes, 0};
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  send.sg_list = &from;
  send.num_sge = 1;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(sender.get(), &send, &bad_send), 0);

  for (int completed = 0; completed < 2;) {
    ibv_wc wc{};
    const int count = ibv_poll_cq(cq.get(), 1, &wc);
    ASSERT_GE(count, 0);
    if (count == 0) continue;
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    ++completed;
  }
  EXPECT_EQ(received, message);
}

}  // namespace
