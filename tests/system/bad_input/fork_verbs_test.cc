// Verbs in a child of fork(). What a context consists of is its process's: the queues and doorbells
// are not mapped in a child, and registered memory is the parent's (ibv_fork_init(3)). So questions
// to the device work there, and every other verb of what was inherited fails with EPERM, before it
// touches anything: the parent goes on as if there were no child. For work of its own a child opens
// or imports the device.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/system/child.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

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

  /// A message of a QP to itself, whose completions are left in its CQ.
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

  /// All that the parent has still works: completions that were there, work, events.
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

  // ---- In the child ----

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
  static void fails_null(const Report& report, const char* name,
                         const std::function<const void*()>& verb) {
    report.begins(name);
    errno = 0;
    const void* result = verb();
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
    fails_null(report, "ibv_create_qp", [&] { return try_qp({}).get(); });
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

  /// Descriptors are shared with the parent, as on Linux: an event is for whoever reads it.
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

  // Destroyed in the reverse order.
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

TEST_F(ForkVerbs, OfAParentsObjectsFailAndDoTheParentNoHarm) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), 7));
  EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }), "");
  take_completions(7);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// rdma-core's tests allocate device memory of one context in many processes.
TEST_F(ForkVerbs, DeviceMemoryThatAChildAllocatesIsItsOwn) {
  EXPECT_EQ(in_child([this](const Report& report) {
              ibv_alloc_dm_attr attr{};
              attr.length = 64;
              ibv_dm* own = ibv_alloc_dm(context.get(), &attr);
              report.expect(own != nullptr, "ibv_alloc_dm");
              if (own == nullptr) return;
              uint64_t word = 7;
              works(report, "its own", [&] { return ibv_memcpy_to_dm(own, 8, &word, 8); });
              word = 0;
              works(report, "its own", [&] { return ibv_memcpy_from_dm(&word, own, 8, 8); });
              report.expect(word == 7, "what was copied there");
              fails(report, "the parent's", [&] { return ibv_free_dm(dm); });
              works(report, "its own", [&] { return ibv_free_dm(own); });
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// A doorbell without the memory to ring it in.
TEST_F(ForkVerbs, IbvReqNotifyCqOfAParentsCqFails) {
  EXPECT_EQ(in_child([this](const Report& report) {
              fails(report, "ibv_req_notify_cq",
                    [&] { return ibv_req_notify_cq(event_cq.get(), 0); });
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

TEST_F(ForkVerbs, FailInAGrandchildToo) {
  EXPECT_EQ(in_child([this](const Report& report) {
              const ContextPtr own = open_device();
              report.expect(own != nullptr, "the child's own context");
              const std::string wrong = in_child([&](const Report& grandchilds) {
                ibv_port_attr port;
                fails_null(grandchilds, "the child's", [&] { return ibv_alloc_pd(own.get()); });
                works(grandchilds, "the child's",
                      [&] { return ibv_query_port(own.get(), 1, &port); });
                every_verb(grandchilds);
                works(grandchilds, "the child's", [&] { return ibv_close_device(own.get()); });
              });
              if (!wrong.empty()) report.wrong(wrong);
              const PdPtr domain_of_own(ibv_alloc_pd(own.get()));
              report.expect(domain_of_own != nullptr, "the child goes on with its own");
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// clone(2) without the C library's fork(), as container runtimes and checkpointers do.
TEST_F(ForkVerbs, FailInAChildThatNoLibraryWasToldOf) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), 7));
  EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }, Forking::kBySystemCall),
            "");
  take_completions(7);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// Between ibv_wr_start and ibv_wr_complete, and between ibv_start_poll and ibv_end_poll.
TEST_F(ForkVerbs, FailInTheMiddleOfPostingAndPolling) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(ex_qp.get(), 7));
  ibv_poll_cq_attr attr{};
  int error;
  while ((error = ibv_start_poll(cq_ex, &attr)) == ENOENT) continue;
  ASSERT_EQ(error, 0);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
  ex->wr_id = 9;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  EXPECT_EQ(in_child([&](const Report& report) {
              report.begins("the parent's session");
              build();
              every_verb(report);
            }),
            "");
  ibv_wr_set_sge(ex, mr->lkey, reinterpret_cast<uint64_t>(slot(0)), 8);
  ASSERT_EQ(post_recv(qp.get(), 9), 0);
  EXPECT_EQ(ibv_wr_complete(ex), 0);
  take_completions(9);
  EXPECT_EQ(cq_ex->wr_id, 7u);
  while ((error = ibv_next_poll(cq_ex)) == ENOENT) settle();
  EXPECT_EQ(error, 0);
  ibv_end_poll(cq_ex);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// The locks of what is in use by other threads are held for ever in the child.
TEST_F(ForkVerbs, FailAndDoNotHangWhateverOtherThreadsDid) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (ibv_wc wc; !done;) ibv_poll_cq(cq.get(), 1, &wc);
  });
  threads.emplace_back([&] {
    while (!done) {
      ibv_poll_cq_attr attr{};
      if (ibv_start_poll(cq_ex, &attr) == 0) ibv_end_poll(cq_ex);
      ibv_req_notify_cq(event_cq.get(), 0);
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      post_recv(qp.get(), 1);
      build_and_abort();
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      const MrPtr region(ibv_reg_mr(pd.get(), slot(5), kSlot, IBV_ACCESS_LOCAL_WRITE));
      const CqPtr other = create_cq(4);
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::thread forker(
        [&] { EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }), ""); });
    forker.join();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

/// Where this process has the memory that it shares with the daemon.
std::vector<std::pair<uint64_t, uint64_t>> shared_with_daemon() {
  std::vector<std::pair<uint64_t, uint64_t>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:rocemu") == line.npos || line.find("-lent") != line.npos) continue;
    uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) found.emplace_back(begin, end);
  }
  return found;
}

// What the child maps where its parent has queues is the child's.
TEST_F(ForkVerbs, DoNotTouchWhatAChildHasInThePlaceOfItsParentsQueues) {
  const auto places = shared_with_daemon();
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(in_child([&](const Report& report) {
              for (const auto& [begin, end] : places) {
                void* place = reinterpret_cast<void*>(begin);
                report.begins("mmap");
                report.expect(
                    mmap(place, end - begin, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == place,
                    "its place is free");
                std::memset(place, 0x5a, end - begin);
              }
              every_verb(report);
              for (const auto& [begin, end] : places) {
                report.begins("what was mapped there");
                report.expect(msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0,
                              "is mapped");
                const auto* bytes = reinterpret_cast<const uint8_t*>(begin);
                for (uint64_t i = 0; i < end - begin; ++i) {
                  if (bytes[i] != 0x5a) return report.wrong("was written to");
                }
              }
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

/// A QP of its own to itself: a message, in a process that was made by fork().
void exchange_of_its_own(const Report& report, ibv_context* own, ibv_pd* own_pd) {
  struct Fixture : TransportTest {
    void TestBody() override {}
  };
  alignas(4096) static uint8_t bytes[8192];
  const MrPtr region(ibv_reg_mr(own_pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE));
  const CqPtr queue(ibv_create_cq(own, 16, nullptr, nullptr, 0));
  if (region == nullptr || queue == nullptr) return report.wrong("objects of its own");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = queue.get();
  init.qp_type = IBV_QPT_UD;
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  const QpPtr own_qp(ibv_create_qp(own_pd, &init));
  if (own_qp == nullptr) return report.wrong("a QP of its own");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQkey;
  int error = ibv_modify_qp(own_qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attr.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(own_qp.get(), &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ibv_modify_qp(own_qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = 1;
  if (error == 0) error = ibv_query_gid(own, 1, 0, &address.grh.dgid);
  const AhPtr own_ah(ibv_create_ah(own_pd, &address));
  if (error != 0 || own_ah == nullptr) return report.wrong("a QP of its own that is ready");
  std::strcpy(reinterpret_cast<char*>(bytes), "the child's");
  ibv_sge to{reinterpret_cast<uint64_t>(bytes) + 4096, 1024, region->lkey};
  ibv_recv_wr recv{};
  recv.sg_list = &to;
  recv.num_sge = 1;
  ibv_recv_wr* bad_recv;
  ibv_sge from{reinterpret_cast<uint64_t>(bytes), 64, region->lkey};
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  send.wr.ud.ah = own_ah.get();
  send.wr.ud.remote_qpn = own_qp->qp_num;
  send.wr.ud.remote_qkey = kQkey;
  ibv_send_wr* bad_send;
  error = ibv_post_recv(own_qp.get(), &recv, &bad_recv);
  if (error == 0) error = ibv_post_send(own_qp.get(), &send, &bad_send);
  report.expect(error == 0, "posting");
  for (int found = 0; found < 2;) {
    ibv_wc wc;
    const int n = ibv_poll_cq(queue.get(), 1, &wc);
    if (n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS)) return report.wrong("polling");
    found += n;
  }
  report.expect(std::strcmp(reinterpret_cast<char*>(bytes) + 4096 + kGrhSize, "the child's") == 0,
                "the message");
}

TEST_F(ForkVerbs, OfAContextThatTheChildOpenedWork) {
  EXPECT_EQ(in_child([](const Report& report) {
              const ContextPtr own = open_device();
              const PdPtr own_pd(own != nullptr ? ibv_alloc_pd(own.get()) : nullptr);
              if (own_pd == nullptr) return report.wrong("a context of its own");
              exchange_of_its_own(report, own.get(), own_pd.get());
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// ibv_import_device(3): "The imported ibv_context ... shares the same underlying kernel resources".
TEST_F(ForkVerbs, OfAContextThatTheChildImportedWork) {
  EXPECT_EQ(in_child([this](const Report& report) {
              ibv_context* own = ibv_import_device(dup(context->cmd_fd));
              if (own == nullptr) return report.wrong("ibv_import_device");
              ibv_pd* same = ibv_import_pd(own, pd->handle);
              if (same == nullptr) return report.wrong("ibv_import_pd");
              exchange_of_its_own(report, own, same);
              ibv_unimport_pd(same);
              report.expect(ibv_close_device(own) == 0, "ibv_close_device");
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// While others register memory, fork() must not leave the child with their lock.
TEST_F(ForkVerbs, OfAChildsOwnContextDoNotHangWhateverOtherThreadsDid) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      while (!done) {
        const MrPtr region(
            ibv_reg_mr(pd.get(), slot(static_cast<size_t>(5 + i)), kSlot, IBV_ACCESS_LOCAL_WRITE));
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_child([](const Report& report) {
                report.begins("ibv_open_device");
                const ContextPtr own = open_device();
                const PdPtr own_pd(own != nullptr ? ibv_alloc_pd(own.get()) : nullptr);
                if (own_pd == nullptr) return report.wrong("a context of its own");
                exchange_of_its_own(report, own.get(), own_pd.get());
              }),
              "");
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// vfork(2) and posix_spawn(3) lend the parent's memory to the child until it has executed another
// program, which inherits no descriptor of a context.
TEST_F(ForkVerbs, GoOnInTheParentOfAProgramThatIsExecuted) {
  for (const int fd : {context->cmd_fd, context->async_fd, channel->fd}) {
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), i));
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, path, nullptr, nullptr, arguments, nullptr), 0);
    take_completions(i);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// ibv_fork_init(3) comes before everything else, so in a process of its own.
TEST(ForkVerbsAfterForkInit, OfAParentsObjectsFailAndDoTheParentNoHarm) {
  EXPECT_EQ(in_child([](const Report& report) {
              setenv("RDMAV_FORK_SAFE", "1", 1);
              ibv_fork_init();
              ForkVerbs parent;
              parent.SetUp();
              if (testing::Test::HasFailure()) return report.wrong("setting up");
              parent.leave_completions(parent.qp.get(), 7);
              const std::string wrong =
                  in_child([&](const Report& childs) { parent.every_verb(childs); });
              if (!wrong.empty()) report.wrong(wrong);
              parent.take_completions(7);
              parent.expect_unharmed(8);
              parent.TearDown();
              if (testing::Test::HasFailure()) report.wrong("the parent was harmed");
            }),
            "");
}

}  // namespace
}  // namespace rocemu::system_test
