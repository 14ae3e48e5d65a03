// Two RC QPs of one process, connected to each other on the first device, by the public libibverbs
// API only. The tests of man page sentences use them. Run the tests under `rocemu run`.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace rocemu::system_test {

/// The longest wait, which is enough for any machine under any load. A test waits that long only if
/// there is an error.
inline constexpr std::chrono::seconds kPatience{60};

template <class T, int (*Destroy)(T*)>
struct Destroyer {
  void operator()(T* object) const { EXPECT_EQ(Destroy(object), 0) << std::strerror(errno); }
};
using ContextPtr = std::unique_ptr<ibv_context, Destroyer<ibv_context, ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Destroyer<ibv_pd, ibv_dealloc_pd>>;
using MrPtr = std::unique_ptr<ibv_mr, Destroyer<ibv_mr, ibv_dereg_mr>>;
using ChannelPtr =
    std::unique_ptr<ibv_comp_channel, Destroyer<ibv_comp_channel, ibv_destroy_comp_channel>>;
using CqPtr = std::unique_ptr<ibv_cq, Destroyer<ibv_cq, ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Destroyer<ibv_qp, ibv_destroy_qp>>;

inline ContextPtr open_device(int index = 0) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = list != nullptr && index < count ? ibv_open_device(list[index]) : nullptr;
  if (list != nullptr) ibv_free_device_list(list);
  return ContextPtr(context);
}

inline bool readable(int fd, int timeout_ms = 0) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLIN) != 0;
}

class VerbsTest : public testing::Test {
 protected:
  static constexpr size_t kSlot = 8192;  // the largest number of bytes of a message
  static constexpr size_t kSlots = 64;
  static constexpr uint32_t kQueueDepth = 32;

  void SetUp() override { set_up(0); }

  void set_up(int device) {
    context = open_device(device);
    ASSERT_NE(context, nullptr) << "no device: is this run under `rocemu run`?";
    pd.reset(ibv_alloc_pd(context.get()));
    ASSERT_NE(pd, nullptr);
    memory.resize(kSlot * kSlots);
    mr.reset(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
    ASSERT_NE(mr, nullptr);
  }

  CqPtr create_cq(int entries = 64, ibv_comp_channel* channel = nullptr,
                  void* cq_context = nullptr) {
    CqPtr cq(ibv_create_cq(context.get(), entries, cq_context, channel, 0));
    EXPECT_NE(cq, nullptr) << std::strerror(errno);
    return cq;
  }

  ChannelPtr create_channel() {
    ChannelPtr channel(ibv_create_comp_channel(context.get()));
    EXPECT_NE(channel, nullptr) << std::strerror(errno);
    return channel;
  }

  QpPtr create_qp(ibv_cq* send_cq, ibv_cq* recv_cq, void* qp_context = nullptr) {
    ibv_qp_init_attr init{};
    init.qp_context = qp_context;
    init.send_cq = send_cq;
    init.recv_cq = recv_cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = kQueueDepth,
                .max_recv_wr = kQueueDepth,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64};
    QpPtr qp(ibv_create_qp(pd.get(), &init));
    EXPECT_NE(qp, nullptr) << std::strerror(errno);
    return qp;
  }

  void to_init(ibv_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
  }

  /// If `peer_gid` is null, the peer is on the same device.
  void to_rtr(ibv_qp* qp, uint32_t peer_qpn, const ibv_gid* peer_gid = nullptr) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer_qpn;
    attr.rq_psn = 100;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 1;  // 10 us
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 64;
    if (peer_gid != nullptr) {
      attr.ah_attr.grh.dgid = *peer_gid;
    } else {
      ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &attr.ah_attr.grh.dgid), 0);
    }
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
  }

  void to_rts(ibv_qp* qp, uint8_t rnr_retry = 7) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 10;  // 4 ms
    attr.retry_cnt = 2;
    attr.rnr_retry = rnr_retry;
    attr.sq_psn = 100;
    attr.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  void to_error(ibv_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  }

  void connect(ibv_qp* a, ibv_qp* b, uint8_t rnr_retry = 7) {
    for (ibv_qp* qp : {a, b}) ASSERT_NO_FATAL_FAILURE(to_init(qp));
    ASSERT_NO_FATAL_FAILURE(to_rtr(a, b->qp_num));
    ASSERT_NO_FATAL_FAILURE(to_rtr(b, a->qp_num));
    for (ibv_qp* qp : {a, b}) ASSERT_NO_FATAL_FAILURE(to_rts(qp, rnr_retry));
  }

  uint8_t* slot(size_t index) { return memory.data() + index * kSlot; }

  ibv_sge sge(size_t index, uint32_t length) {
    return {reinterpret_cast<uint64_t>(slot(index)), length, mr->lkey};
  }

  int post_recv(ibv_qp* qp, uint64_t wr_id, size_t index = 1, uint32_t length = kSlot) {
    ibv_sge entry = sge(index, length);
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &entry;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }

  int post_send(ibv_qp* qp, uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED,
                uint32_t length = 16, size_t index = 0) {
    ibv_sge entry = sge(index, length);
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &entry;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }

  /// Returns the next `count` completions, or fewer after kPatience or if polling fails.
  std::vector<ibv_wc> poll_for(ibv_cq* cq, size_t count) {
    std::vector<ibv_wc> found;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (found.size() < count && std::chrono::steady_clock::now() < deadline) {
      ibv_wc wc{};
      const int n = ibv_poll_cq(cq, 1, &wc);
      if (n < 0) break;
      if (n == 1) found.push_back(wc);
    }
    EXPECT_EQ(found.size(), count);
    return found;
  }

  /// Waits until the device has finished all earlier requests and written their events: it serves
  /// requests one after the other, and settle() makes one more.
  void settle() {
    ibv_port_attr attr;
    ASSERT_EQ(ibv_query_port(context.get(), 1, &attr), 0);
  }

  /// Returns whether an event can be read without waiting. Events that the device has already
  /// caused are included.
  bool event_pending(ibv_comp_channel* channel) {
    settle();
    return readable(channel->fd);
  }

  /// Waits for an event, acknowledges it, and returns its CQ.
  ibv_cq* take_event(ibv_comp_channel* channel) {
    EXPECT_TRUE(readable(channel->fd, 30'000)) << "no completion event came";
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
    if (cq != nullptr) ibv_ack_cq_events(cq, 1);
    return cq;
  }

  /// Waits for an async event, acknowledges it, and returns it.
  ibv_async_event take_async_event() {
    EXPECT_TRUE(readable(context->async_fd, 30'000)) << "no async event came";
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(context.get(), &event), 0);
    ibv_ack_async_event(&event);
    return event;
  }

  ContextPtr context;
  PdPtr pd;
  std::vector<uint8_t> memory;
  MrPtr mr;
};

/// Has a channel, a CQ on it for the receiver's completions, another CQ for the sender's, and two
/// QPs.
class ConnectedTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    channel = create_channel();
    cq = create_cq(64, channel.get(), this);
    other_cq = create_cq();
    sender = create_qp(other_cq.get(), other_cq.get());
    receiver = create_qp(cq.get(), cq.get());
    ASSERT_TRUE(channel && cq && other_cq && sender && receiver);
    ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  }

  /// Sends a message from sender to receiver, and waits until it has arrived.
  void deliver_message(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ASSERT_EQ(post_recv(receiver.get(), wr_id), 0);
    ASSERT_EQ(post_send(sender.get(), wr_id, flags | IBV_SEND_SIGNALED), 0);
    ASSERT_EQ(poll_for(other_cq.get(), 1).size(), 1u);
    settle();
  }

  // The members are destroyed in the reverse order: QPs before CQs before the channel.
  ChannelPtr channel;
  CqPtr cq, other_cq;
  QpPtr sender, receiver;
};

}  // namespace rocemu::system_test
