// A parent with objects of every kind, and the calls that its children may make on these objects.
#pragma once

#include <fcntl.h>

#include <functional>
#include <string>

#include "tests/system/child.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {

class ForkVerbs : public TransportTest {
 public:
  void TestBody() override {}

  void SetUp() override {
    TransportTest::SetUp();
    channel = create_channel();
    event_cq = create_cq(16, channel.get());
    ibv_cq_init_attr_ex ex_init{};
    ex_init.cqe = 16;
    ex_init.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    cq_ex = ibv_create_cq_ex(context.get(), &ex_init);
    ASSERT_NE(cq_ex, nullptr);
    qp = make_qp({.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW |
                              IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE});
    ex_qp = make_qp({.cq = ibv_cq_ex_to_cq(cq_ex)});
    event_qp = make_qp({.cq = event_cq.get()});
    ud = make_qp({.type = IBV_QPT_UD});
    for (ibv_qp* each : {qp.get(), ex_qp.get(), event_qp.get()}) {
      ASSERT_NO_FATAL_FAILURE(bring_up(each, each->qp_num));
    }
    ibv_srq_init_attr srq_init{};
    srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    srq.reset(ibv_create_srq(pd.get(), &srq_init));
    ibv_xrcd_init_attr xrcd_init{};
    xrcd_init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    xrcd_init.fd = -1;
    xrcd_init.oflags = O_CREAT;
    xrcd.reset(ibv_open_xrcd(context.get(), &xrcd_init));
    one.reset(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1));
    two.reset(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2));
    ah = make_ah();
    ibv_alloc_dm_attr dm_attr{};
    dm_attr.length = 64;
    dm = ibv_alloc_dm(context.get(), &dm_attr);
    ibv_td_init_attr td_attr{};
    td = ibv_alloc_td(context.get(), &td_attr);
    ibv_parent_domain_init_attr domain_attr{};
    domain_attr.pd = pd.get();
    domain_attr.td = td;
    domain = ibv_alloc_parent_domain(context.get(), &domain_attr);
    ASSERT_TRUE(srq && xrcd && one && two && ah && dm && td && domain);
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 1;
  }

  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    EXPECT_EQ(ibv_dealloc_td(td), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    ex_qp.reset();
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
  }

  /// Sends a message from the QP to itself, and leaves its completions in the CQ.
  void leave_completions(ibv_qp* of, uint64_t wr_id) {
    ASSERT_EQ(post_recv(of, wr_id), 0);
    ASSERT_EQ(post_send(of, wr_id), 0);
    settle();
  }
  void take_completions(uint64_t wr_id) {
    for (const ibv_wc& wc : poll_for(cq.get(), 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, wr_id);
    }
  }

  /// Checks that all objects of the parent still work: existing completions, new work, events.
  void expect_unharmed(uint64_t wr_id) {
    ASSERT_EQ(ibv_req_notify_cq(event_cq.get(), 0), 0);
    ASSERT_NO_FATAL_FAILURE(leave_completions(event_qp.get(), wr_id));
    EXPECT_EQ(take_event(channel.get()), event_cq.get());
    EXPECT_EQ(poll_for(event_cq.get(), 2).size(), 2u);
    ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), wr_id));
    take_completions(wr_id);
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    for (ibv_qp* each : {qp.get(), ex_qp.get(), event_qp.get()}) {
      EXPECT_EQ(ibv_query_qp(each, &attr, IBV_QP_STATE, &init), 0);
      EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    }
    const MrPtr region(ibv_reg_mr(pd.get(), slot(5), kSlot, IBV_ACCESS_LOCAL_WRITE));
    EXPECT_NE(region, nullptr);
  }

  // ---- Called in the child ----

  static void works(const Report& report, const char* name, const std::function<int()>& verb) {
    report.begins(name);
    const int result = verb();
    report.expect(result == 0, std::string(name) + " returned " + std::to_string(result));
  }
  static void fails(const Report& report, const char* name, const std::function<int()>& verb) {
    report.begins(name);
    errno = 0;
    const int result = verb();
    report.expect(result == EPERM && errno == EPERM, std::string(name) + " returned " +
                                                         std::to_string(result) + " with errno " +
                                                         std::to_string(errno));
  }
  template <class Verb>
  static void fails_null(const Report& report, const char* name, const Verb& verb) {
    report.begins(name);
    errno = 0;
    const auto result = verb();
    report.expect(result == nullptr && errno == EPERM,
                  std::string(name) + (result == nullptr ? " returned null" : " worked") +
                      " with errno " + std::to_string(errno));
  }

  void every_question_works(const Report& report) {
    ibv_device_attr device;
    ibv_port_attr port;
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ibv_srq_attr srq_attr;
    ibv_gid gid;
    uint16_t pkey;
    works(report, "ibv_query_device", [&] { return ibv_query_device(context.get(), &device); });
    works(report, "ibv_query_port", [&] { return ibv_query_port(context.get(), 1, &port); });
    works(report, "ibv_query_gid", [&] { return ibv_query_gid(context.get(), 1, 0, &gid); });
    works(report, "ibv_query_pkey", [&] { return ibv_query_pkey(context.get(), 1, 0, &pkey); });
    works(report, "ibv_query_qp", [&] { return ibv_query_qp(qp.get(), &attr, 0, &init); });
    works(report, "ibv_query_srq", [&] { return ibv_query_srq(srq.get(), &srq_attr); });
  }

  void posting_fails(const Report& report) {
    ibv_send_wr send{};
    ibv_recv_wr recv{};
    ibv_send_wr* bad_send = nullptr;
    ibv_recv_wr* bad_recv = nullptr;
    fails(report, "ibv_post_send", [&] { return ibv_post_send(qp.get(), &send, &bad_send); });
    fails(report, "ibv_post_recv", [&] { return ibv_post_recv(qp.get(), &recv, &bad_recv); });
    fails(report, "ibv_post_srq_recv",
          [&] { return ibv_post_srq_recv(srq.get(), &recv, &bad_recv); });
    ibv_mw_bind bind{};
    fails(report, "ibv_bind_mw", [&] { return ibv_bind_mw(qp.get(), one.get(), &bind); });
    report.begins("ibv_wr_start");
    build_and_abort();
    build_all();
    fails(report, "ibv_wr_complete", [&] { return ibv_wr_complete(ibv_qp_to_qp_ex(qp.get())); });
  }
  void build_all() {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_start(ex);
    build();
  }
  void build() {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, mr->lkey, 0, 8);
    ibv_wr_rdma_write(ex, 1, 2);
    char byte = 1;
    ibv_wr_set_inline_data(ex, &byte, 1);
    const ibv_mw_bind_info info{};
    ibv_wr_bind_mw(ex, two.get(), 1, &info);
    const uint64_t value = 1;
    ibv_wr_atomic_write(ex, 1, 8, &value);
  }
  void build_and_abort() {
    build_all();
    ibv_wr_abort(ibv_qp_to_qp_ex(qp.get()));
  }

  void polling_fails(const Report& report) {
    ibv_wc wc;
    report.begins("ibv_poll_cq");
    errno = 0;
    report.expect(ibv_poll_cq(cq.get(), 1, &wc) < 0 && errno == EPERM, "ibv_poll_cq");
    fails(report, "ibv_req_notify_cq", [&] { return ibv_req_notify_cq(event_cq.get(), 0); });
    fails(report, "ibv_resize_cq", [&] { return ibv_resize_cq(cq.get(), 512); });
    ibv_modify_cq_attr modify{};
    fails(report, "ibv_modify_cq", [&] { return ibv_modify_cq(cq.get(), &modify); });
    ibv_poll_cq_attr attr{};
    fails(report, "ibv_start_poll", [&] { return ibv_start_poll(cq_ex, &attr); });
    fails(report, "ibv_next_poll", [&] { return ibv_next_poll(cq_ex); });
    report.begins("ibv_wc_read_completion_wallclock_ns");
    ibv_wc_read_completion_wallclock_ns(cq_ex);
    report.begins("ibv_end_poll");
    ibv_end_poll(cq_ex);
  }

  void creating_fails(const Report& report) {
    fails_null(report, "ibv_alloc_pd", [&] { return ibv_alloc_pd(context.get()); });
    fails_null(report, "ibv_reg_mr",
               [&] { return ibv_reg_mr(pd.get(), memory.data(), 64, IBV_ACCESS_LOCAL_WRITE); });
    fails_null(report, "ibv_alloc_null_mr", [&] { return ibv_alloc_null_mr(pd.get()); });
    fails_null(report, "ibv_reg_dm_mr",
               [&] { return ibv_reg_dm_mr(pd.get(), dm, 0, 64, IBV_ACCESS_ZERO_BASED); });
    fails_null(report, "ibv_alloc_mw", [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); });
    fails_null(report, "ibv_create_cq",
               [&] { return ibv_create_cq(context.get(), 4, nullptr, nullptr, 0); });
    ibv_cq_init_attr_ex cq_init{};
    cq_init.cqe = 4;
    fails_null(report, "ibv_create_cq_ex",
               [&] { return ibv_create_cq_ex(context.get(), &cq_init); });
    fails_null(report, "ibv_create_qp", [&] { return try_qp({}); });
    ibv_srq_init_attr srq_init{};
    srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    fails_null(report, "ibv_create_srq", [&] { return ibv_create_srq(pd.get(), &srq_init); });
    ibv_ah_attr ah_attr = address_of_own();
    fails_null(report, "ibv_create_ah", [&] { return ibv_create_ah(pd.get(), &ah_attr); });
    ibv_xrcd_init_attr xrcd_init{};
    xrcd_init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    xrcd_init.fd = -1;
    xrcd_init.oflags = O_CREAT;
    fails_null(report, "ibv_open_xrcd", [&] { return ibv_open_xrcd(context.get(), &xrcd_init); });
    ibv_td_init_attr td_attr{};
    fails_null(report, "ibv_alloc_td", [&] { return ibv_alloc_td(context.get(), &td_attr); });
    ibv_parent_domain_init_attr domain_attr{};
    domain_attr.pd = pd.get();
    fails_null(report, "ibv_alloc_parent_domain",
               [&] { return ibv_alloc_parent_domain(context.get(), &domain_attr); });
    fails_null(report, "ibv_import_pd", [&] { return ibv_import_pd(context.get(), pd->handle); });
    fails_null(report, "ibv_import_mr", [&] { return ibv_import_mr(pd.get(), mr->handle); });
  }

  void changing_fails(const Report& report) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    fails(report, "ibv_modify_qp", [&] { return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE); });
    ibv_srq_attr srq_attr{};
    fails(report, "ibv_modify_srq",
          [&] { return ibv_modify_srq(srq.get(), &srq_attr, IBV_SRQ_LIMIT); });
    report.begins("ibv_rereg_mr");
    errno = 0;
    report.expect(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0) != 0 &&
                      errno == EPERM,
                  "ibv_rereg_mr");
    ibv_sge sge{0, 1, mr->lkey};
    fails(report, "ibv_advise_mr",
          [&] { return ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1); });
    fails(report, "ibv_attach_mcast", [&] { return ibv_attach_mcast(ud.get(), &group, 0); });
    fails(report, "ibv_detach_mcast", [&] { return ibv_detach_mcast(ud.get(), &group, 0); });
    char bytes[8] = {};
    fails(report, "ibv_memcpy_to_dm", [&] { return ibv_memcpy_to_dm(dm, 0, bytes, 8); });
    fails(report, "ibv_memcpy_from_dm", [&] { return ibv_memcpy_from_dm(bytes, dm, 0, 8); });
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    fails(report, "ibv_query_rt_values_ex",
          [&] { return ibv_query_rt_values_ex(context.get(), &values); });
  }

  void destroying_fails(const Report& report) {
    fails(report, "ibv_destroy_qp", [&] { return ibv_destroy_qp(qp.get()); });
    fails(report, "ibv_destroy_cq", [&] { return ibv_destroy_cq(cq.get()); });
    fails(report, "ibv_destroy_cq", [&] { return ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)); });
    fails(report, "ibv_destroy_srq", [&] { return ibv_destroy_srq(srq.get()); });
    fails(report, "ibv_destroy_ah", [&] { return ibv_destroy_ah(ah.get()); });
    fails(report, "ibv_dealloc_mw", [&] { return ibv_dealloc_mw(one.get()); });
    fails(report, "ibv_dereg_mr", [&] { return ibv_dereg_mr(mr.get()); });
    fails(report, "ibv_free_dm", [&] { return ibv_free_dm(dm); });
    fails(report, "ibv_close_xrcd", [&] { return ibv_close_xrcd(xrcd.get()); });
    fails(report, "ibv_dealloc_pd", [&] { return ibv_dealloc_pd(domain); });
    fails(report, "ibv_dealloc_td", [&] { return ibv_dealloc_td(td); });
    fails(report, "ibv_dealloc_pd", [&] { return ibv_dealloc_pd(pd.get()); });
  }

  /// Descriptors are shared with the parent, as on Linux: the process that reads an event gets it.
  void descriptors_work(const Report& report) {
    for (const int fd : {channel->fd, context->async_fd}) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    ibv_cq* of = nullptr;
    void* of_context = nullptr;
    report.begins("ibv_get_cq_event");
    report.expect(ibv_get_cq_event(channel.get(), &of, &of_context) == -1 && errno == EAGAIN,
                  "ibv_get_cq_event");
    ibv_async_event event;
    report.begins("ibv_get_async_event");
    report.expect(ibv_get_async_event(context.get(), &event) == -1 && errno == EAGAIN,
                  "ibv_get_async_event");
    for (const int fd : {channel->fd, context->async_fd}) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    }
    report.begins("ibv_ack_cq_events");
    ibv_ack_cq_events(event_cq.get(), 0);
    report.begins("ibv_create_comp_channel");
    ibv_comp_channel* own = ibv_create_comp_channel(context.get());
    if (own == nullptr) return report.wrong("ibv_create_comp_channel");
    fails_null(report, "ibv_create_cq",
               [&] { return ibv_create_cq(context.get(), 4, nullptr, own, 0); });
    works(report, "ibv_destroy_comp_channel", [&] { return ibv_destroy_comp_channel(own); });
    report.begins("ibv_destroy_comp_channel");
    report.expect(ibv_destroy_comp_channel(channel.get()) == EBUSY, "the parent's channel");
  }

  void every_verb(const Report& report) {
    every_question_works(report);
    descriptors_work(report);
    posting_fails(report);
    polling_fails(report);
    creating_fails(report);
    changing_fails(report);
    destroying_fails(report);
    works(report, "ibv_close_device", [&] { return ibv_close_device(context.get()); });
  }

  // The members are destroyed in the reverse order.
  ChannelPtr channel;
  CqPtr event_cq;
  ibv_cq_ex* cq_ex = nullptr;
  SrqPtr srq;
  XrcdPtr xrcd;
  AhPtr ah;
  MwPtr one, two;
  QpPtr qp, ex_qp, event_qp, ud;
  ibv_dm* dm = nullptr;
  ibv_td* td = nullptr;
  ibv_pd* domain = nullptr;
  ibv_gid group{};
};

}  // namespace rocemu::system_test
