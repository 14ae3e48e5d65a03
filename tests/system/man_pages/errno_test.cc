// Tests that a verb that fails also sets errno to the value that it returns, whichever part finds
// the error: the man pages say that a verb "returns 0 on success, or the value of errno on failure
// (which indicates the failure reason)", and the system calls of a kernel's provider set errno. A
// handle that names no object causes ENOENT, which the kernel returns if it does not find the
// handle among the file's objects.
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr int kUntouched = 12345;

class Errno : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    qp = make_qp({.send_ops = IBV_QP_EX_WITH_SEND});
    ud = make_qp({.type = IBV_QPT_UD});
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    srq.reset(ibv_create_srq(pd.get(), &init));
    mw.reset(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1));
    ASSERT_TRUE(qp && ud && srq && mw);
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 1;
  }

  /// Prints a value, which tests/system/test_refusals.py compares with a recording.
  static void tell(const char* name, int error) {
    if (error != 0) std::cout << "refused: " << name << ' ' << error << '\n';
  }
  /// Checks a verb whose result is an error number.
  static void expect(const char* name, int error, const std::function<int()>& verb) {
    errno = kUntouched;
    const int result = verb();
    const int after = errno;
    tell(name, error);
    EXPECT_EQ(result, error) << name;
    EXPECT_EQ(after, error == 0 ? kUntouched : error) << name;
  }
  /// Checks a verb whose result is an object.
  template <class Verb>
  static void expect_null(const char* name, int error, const Verb& verb) {
    errno = kUntouched;
    const auto result = verb();
    const int after = errno;
    tell(name, error);
    EXPECT_EQ(result, nullptr) << name;
    EXPECT_EQ(after, error) << name;
  }
  /// ibv_rereg_mr(3) has its own results: "On error, returns one of ibv_rereg_mr_err_code".
  void expect_rereg_error(int error, int flags, ibv_pd* new_pd) {
    errno = kUntouched;
    const int result = ibv_rereg_mr(mr.get(), flags, new_pd, nullptr, 0, 0);
    const int after = errno;
    tell("ibv_rereg_mr", error);
    EXPECT_NE(result, 0);
    EXPECT_EQ(after, error);
  }

  QpPtr qp, ud;
  SrqPtr srq;
  MwPtr mw;
  ibv_gid group{};
};

TEST_F(Errno, IsWhatTheVerbReturnsWhenTheProviderFindsTheError) {
  ibv_send_wr send{};
  ibv_recv_wr recv{};
  ibv_send_wr* bad_send;
  ibv_recv_wr* bad_recv;
  recv.num_sge = 1000;
  expect("ibv_post_send", EINVAL, [&] { return ibv_post_send(qp.get(), &send, &bad_send); });
  expect("ibv_post_recv", EINVAL, [&] { return ibv_post_recv(qp.get(), &recv, &bad_recv); });
  expect("ibv_post_srq_recv", EINVAL,
         [&] { return ibv_post_srq_recv(srq.get(), &recv, &bad_recv); });
  ibv_mw_bind bind{};
  expect("ibv_bind_mw", EINVAL, [&] { return ibv_bind_mw(ud.get(), mw.get(), &bind); });
  expect("ibv_attach_mcast", EINVAL, [&] { return ibv_attach_mcast(qp.get(), &group, 0); });
  expect("ibv_detach_mcast", EINVAL, [&] { return ibv_detach_mcast(qp.get(), &group, 0); });
  expect("ibv_resize_cq", EINVAL, [&] { return ibv_resize_cq(cq.get(), 0); });
  ibv_modify_cq_attr modify_cq{};
  modify_cq.attr_mask = 1u << 7;
  expect("ibv_modify_cq", EINVAL, [&] { return ibv_modify_cq(cq.get(), &modify_cq); });
  expect("ibv_advise_mr", EINVAL,
         [&] { return ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 1); });
  uint32_t number;
  expect("ibv_get_srq_num", EINVAL, [&] { return ibv_get_srq_num(srq.get(), &number); });

  ibv_alloc_dm_attr dm_attr{};
  dm_attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(context.get(), &dm_attr);
  ASSERT_NE(dm, nullptr);
  uint8_t bytes[8] = {};
  expect("ibv_memcpy_to_dm", EINVAL, [&] { return ibv_memcpy_to_dm(dm, 64, bytes, 8); });
  expect("ibv_memcpy_from_dm", EINVAL, [&] { return ibv_memcpy_from_dm(bytes, dm, 3, 4); });
  ibv_mr* dm_mr =
      ibv_reg_dm_mr(pd.get(), dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(dm_mr, nullptr);
  expect("ibv_free_dm", EBUSY, [&] { return ibv_free_dm(dm); });
  expect("ibv_dereg_mr", 0, [&] { return ibv_dereg_mr(dm_mr); });
  expect("ibv_free_dm", 0, [&] { return ibv_free_dm(dm); });

  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(context.get(), &td_attr);
  ibv_parent_domain_init_attr domain{};
  domain.pd = pd.get();
  domain.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context.get(), &domain);
  ASSERT_NE(parent, nullptr);
  expect("ibv_dealloc_td", EBUSY, [&] { return ibv_dealloc_td(td); });
  expect("ibv_dealloc_pd", EBUSY, [&] { return ibv_dealloc_pd(pd.get()); });
  expect("ibv_dealloc_pd", 0, [&] { return ibv_dealloc_pd(parent); });
  expect("ibv_dealloc_td", 0, [&] { return ibv_dealloc_td(td); });

  ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp.get());
  ibv_wr_start(builder);
  ibv_wr_send(builder);
  expect("ibv_wr_complete", EINVAL, [&] { return ibv_wr_complete(builder); });

  ibv_cq_init_attr_ex ex_init{};
  ex_init.cqe = 4;
  ibv_cq_ex* ex = ibv_create_cq_ex(context.get(), &ex_init);
  ASSERT_NE(ex, nullptr);
  ibv_poll_cq_attr poll_attr{1};
  expect("ibv_start_poll", EINVAL, [&] { return ibv_start_poll(ex, &poll_attr); });
  poll_attr.comp_mask = 0;
  expect("ibv_start_poll", ENOENT, [&] { return ibv_start_poll(ex, &poll_attr); });
  expect("ibv_destroy_cq", 0, [&] { return ibv_destroy_cq(ibv_cq_ex_to_cq(ex)); });
}

TEST_F(Errno, IsSetWhenTheProviderCreatesNothing) {
  constexpr uint32_t kNoBit = 1u << 31;
  expect_null("ibv_create_cq", EINVAL,
              [&] { return ibv_create_cq(context.get(), 0, nullptr, nullptr, 0); });
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 0;
  expect_null("ibv_create_cq_ex", EINVAL,
              [&] { return ibv_create_cq_ex(context.get(), &cq_init); });
  ibv_alloc_dm_attr dm_attr{};
  dm_attr.comp_mask = kNoBit;
  expect_null("ibv_alloc_dm", EOPNOTSUPP, [&] { return ibv_alloc_dm(context.get(), &dm_attr); });
  ibv_td_init_attr td_attr{};
  td_attr.comp_mask = kNoBit;
  expect_null("ibv_alloc_td", EOPNOTSUPP, [&] { return ibv_alloc_td(context.get(), &td_attr); });
  ibv_parent_domain_init_attr domain{};
  expect_null("ibv_alloc_parent_domain", EINVAL,
              [&] { return ibv_alloc_parent_domain(context.get(), &domain); });
  expect_null("ibv_alloc_mw", EINVAL,
              [&] { return ibv_alloc_mw(pd.get(), static_cast<ibv_mw_type>(3)); });
  ibv_xrcd_init_attr xrcd{};
  expect_null("ibv_open_xrcd", EINVAL, [&] { return ibv_open_xrcd(context.get(), &xrcd); });
  ibv_srq_init_attr_ex srq_init{};
  srq_init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  srq_init.srq_type = IBV_SRQT_XRC;
  srq_init.pd = pd.get();
  srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  expect_null("ibv_create_srq_ex", EINVAL,
              [&] { return ibv_create_srq_ex(context.get(), &srq_init); });
  ibv_qp_init_attr_ex qp_init{};
  qp_init.comp_mask = IBV_QP_INIT_ATTR_PD;
  qp_init.pd = pd.get();
  qp_init.qp_type = IBV_QPT_RC;
  expect_null("ibv_create_qp_ex", EINVAL,
              [&] { return ibv_create_qp_ex(context.get(), &qp_init); });
  qp_init.qp_type = IBV_QPT_RAW_PACKET;
  expect_null("ibv_create_qp_ex", EOPNOTSUPP,
              [&] { return ibv_create_qp_ex(context.get(), &qp_init); });
  ibv_qp_open_attr open{};
  expect_null("ibv_open_qp", EINVAL, [&] { return ibv_open_qp(context.get(), &open); });
  const int no_dmabuf = fileno(stdin);
  expect_null("ibv_reg_dmabuf_mr", EINVAL,
              [&] { return ibv_reg_dmabuf_mr(pd.get(), 0, 0, 0, no_dmabuf, 0); });
}

TEST_F(Errno, IsWhatTheVerbReturnsWhenTheDeviceFindsTheError) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  expect("ibv_modify_qp", EINVAL, [&] { return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE); });
  ibv_srq_attr srq_attr{};
  srq_attr.srq_limit = 1'000'000;
  expect("ibv_modify_srq", EINVAL,
         [&] { return ibv_modify_srq(srq.get(), &srq_attr, IBV_SRQ_LIMIT); });
  expect("ibv_resize_cq", EINVAL, [&] { return ibv_resize_cq(cq.get(), 1 << 30); });
  ibv_port_attr port;
  expect("ibv_query_port", EINVAL, [&] { return ibv_query_port(context.get(), 99, &port); });
  expect("ibv_attach_mcast", EINVAL, [&] { return ibv_attach_mcast(ud.get(), &own_gid, 0); });
  expect("ibv_detach_mcast", EINVAL, [&] { return ibv_detach_mcast(ud.get(), &group, 0); });
  ibv_sge of_no_region{0, 1, 0xffffffff};
  expect("ibv_advise_mr", ENOENT, [&] {
    return ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &of_no_region, 1);
  });
  expect("ibv_dealloc_pd", EBUSY, [&] { return ibv_dealloc_pd(pd.get()); });
  expect("ibv_destroy_cq", EBUSY, [&] { return ibv_destroy_cq(cq.get()); });
  expect_rereg_error(EINVAL, 0, nullptr);
  expect_null("ibv_create_cq", EINVAL,
              [&] { return ibv_create_cq(context.get(), 1 << 30, nullptr, nullptr, 0); });
}

// After an overrun, a CQ can neither be polled nor notify (ibv_create_cq(3)).
TEST_F(Errno, IsSetByTheVerbsOfACqThatOverran) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 1;
  ibv_cq_ex* small = ibv_create_cq_ex(context.get(), &init);
  ASSERT_NE(small, nullptr);
  ibv_cq* base = ibv_cq_ex_to_cq(small);
  QpPtr full = make_qp({.cq = base});
  ASSERT_NO_FATAL_FAILURE(bring_up(full.get(), full->qp_num));
  to_error(full.get());
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(post_send(full.get(), i), 0);
  settle();
  ibv_poll_cq_attr attr{};
  expect("ibv_req_notify_cq", EIO, [&] { return ibv_req_notify_cq(base, 0); });
  expect("ibv_start_poll", EIO, [&] { return ibv_start_poll(small, &attr); });
  ibv_wc wc;
  expect("ibv_poll_cq", EIO, [&] { return ibv_poll_cq(base, 1, &wc) < 0 ? errno : 0; });
  // The overrun causes two events, one about the CQ and one about the QP. Destroying either object
  // waits until its event is acknowledged.
  while (readable(context->async_fd)) take_async_event();
  full.reset();
  expect("ibv_destroy_cq", 0, [&] { return ibv_destroy_cq(base); });
}

TEST_F(Errno, StaysAsItWasWhenAVerbSucceeds) {
  ibv_device_attr device;
  ibv_port_attr port;
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ibv_srq_attr srq_attr;
  ibv_wc wc;
  expect("ibv_query_device", 0, [&] { return ibv_query_device(context.get(), &device); });
  expect("ibv_query_port", 0, [&] { return ibv_query_port(context.get(), 1, &port); });
  expect("ibv_query_qp", 0, [&] { return ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init); });
  expect("ibv_query_srq", 0, [&] { return ibv_query_srq(srq.get(), &srq_attr); });
  expect("ibv_req_notify_cq", 0, [&] { return ibv_req_notify_cq(cq.get(), 0); });
  expect("ibv_poll_cq", 0, [&] { return ibv_poll_cq(cq.get(), 1, &wc); });
  expect("ibv_attach_mcast", 0, [&] { return ibv_attach_mcast(ud.get(), &group, 0); });
  expect("ibv_detach_mcast", 0, [&] { return ibv_detach_mcast(ud.get(), &group, 0); });
  ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  expect("ibv_post_recv", 0, [&] { return post_recv(qp.get(), 1); });
  expect("ibv_post_send", 0, [&] { return post_send(qp.get(), 2); });
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u);
}

/// Replaces a handle, or another number of an object, by one that no object has. The destructor
/// restores it.
class WrongNumber {
 public:
  explicit WrongNumber(uint32_t& number) : number_(number), right_(number) { number = 0xfffff0; }
  ~WrongNumber() { number_ = right_; }

 private:
  uint32_t& number_;
  uint32_t right_;
};

TEST_F(Errno, IsEnoentForAHandleThatNothingHas) {
  constexpr uint32_t kNothing = 0xfffff0;
  const AhPtr ah = make_ah();
  const CqPtr spare = create_cq();
  ibv_alloc_dm_attr dm_attr{};
  dm_attr.length = 64;
  ibv_dm* dm = ibv_alloc_dm(context.get(), &dm_attr);
  ASSERT_NE(dm, nullptr);
  {
    const WrongNumber wrong(pd->handle);
    ibv_ah_attr ah_attr = address_of_own();
    ibv_srq_init_attr srq_init{};
    srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    ibv_sge sge{0, 1, mr->lkey};
    expect_null("ibv_reg_mr", ENOENT,
                [&] { return ibv_reg_mr(pd.get(), memory.data(), 64, IBV_ACCESS_LOCAL_WRITE); });
    expect_null("ibv_alloc_null_mr", ENOENT, [&] { return ibv_alloc_null_mr(pd.get()); });
    expect_null("ibv_alloc_mw", ENOENT, [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); });
    expect_null("ibv_create_ah", ENOENT, [&] { return ibv_create_ah(pd.get(), &ah_attr); });
    expect_null("ibv_create_srq", ENOENT, [&] { return ibv_create_srq(pd.get(), &srq_init); });
    expect_null("ibv_create_qp", ENOENT, [&] { return try_qp({}); });
    expect("ibv_advise_mr", ENOENT,
           [&] { return ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1); });
    expect_rereg_error(ENOENT, IBV_REREG_MR_CHANGE_PD, pd.get());
  }
  {
    PdPtr other(ibv_alloc_pd(context.get()));
    const WrongNumber wrong(other->handle);
    expect("ibv_dealloc_pd", ENOENT, [&] { return ibv_dealloc_pd(other.get()); });
  }
  {
    const WrongNumber wrong(mr->handle);
    expect("ibv_dereg_mr", ENOENT, [&] { return ibv_dereg_mr(mr.get()); });
    expect_rereg_error(ENOENT, IBV_REREG_MR_CHANGE_ACCESS, nullptr);
  }
  {
    const WrongNumber wrong(mw->handle);
    expect("ibv_dealloc_mw", ENOENT, [&] { return ibv_dealloc_mw(mw.get()); });
  }
  {
    const WrongNumber wrong(ah->handle);
    expect("ibv_destroy_ah", ENOENT, [&] { return ibv_destroy_ah(ah.get()); });
  }
  {
    const WrongNumber wrong(dm->handle);
    expect("ibv_free_dm", ENOENT, [&] { return ibv_free_dm(dm); });
  }
  {
    const WrongNumber wrong(spare->handle);
    ibv_modify_cq_attr attr{};
    attr.attr_mask = IBV_CQ_ATTR_MODERATE;
    expect("ibv_destroy_cq", ENOENT, [&] { return ibv_destroy_cq(spare.get()); });
    expect("ibv_resize_cq", ENOENT, [&] { return ibv_resize_cq(spare.get(), 8); });
    expect("ibv_modify_cq", ENOENT, [&] { return ibv_modify_cq(spare.get(), &attr); });
    expect_null("ibv_create_qp", ENOENT, [&] { return try_qp({.cq = spare.get()}); });
  }
  {
    const WrongNumber wrong(srq->handle);
    ibv_srq_attr attr{};
    expect("ibv_query_srq", ENOENT, [&] { return ibv_query_srq(srq.get(), &attr); });
    expect("ibv_modify_srq", ENOENT,
           [&] { return ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT); });
    expect("ibv_destroy_srq", ENOENT, [&] { return ibv_destroy_srq(srq.get()); });
    expect_null("ibv_create_qp", ENOENT, [&] { return try_qp({.srq = srq.get()}); });
  }
  {
    const WrongNumber wrong(ud->handle);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init;
    expect("ibv_query_qp", ENOENT, [&] { return ibv_query_qp(ud.get(), &attr, 0, &init); });
    expect("ibv_modify_qp", ENOENT, [&] { return ibv_modify_qp(ud.get(), &attr, IBV_QP_STATE); });
    expect("ibv_destroy_qp", ENOENT, [&] { return ibv_destroy_qp(ud.get()); });
    expect("ibv_attach_mcast", ENOENT, [&] { return ibv_attach_mcast(ud.get(), &group, 0); });
    expect("ibv_detach_mcast", ENOENT, [&] { return ibv_detach_mcast(ud.get(), &group, 0); });
  }
  {
    // the QP number names the QP to peers; for the device, the QP has a handle
    const WrongNumber wrong(ud->qp_num);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init;
    expect("ibv_query_qp", 0, [&] { return ibv_query_qp(ud.get(), &attr, 0, &init); });
    expect("ibv_attach_mcast", 0, [&] { return ibv_attach_mcast(ud.get(), &group, 0); });
    expect("ibv_detach_mcast", 0, [&] { return ibv_detach_mcast(ud.get(), &group, 0); });
  }
  expect_null("ibv_import_pd", ENOENT, [&] { return ibv_import_pd(context.get(), kNothing); });
  expect_null("ibv_import_mr", ENOENT, [&] { return ibv_import_mr(pd.get(), kNothing); });
  expect("ibv_free_dm", 0, [&] { return ibv_free_dm(dm); });
}

// The provider has several ways of waiting, and each must keep errno. If other threads spin, the
// provider sleeps in the kernel.
TEST_F(Errno, StaysAsItWasWhileACqIsPolledThatIsEmpty) {
  std::atomic<bool> stopping{false};
  std::vector<std::thread> spinners;
  for (unsigned i = 0; i <= std::thread::hardware_concurrency(); ++i) {
    spinners.emplace_back([&] {
      while (!stopping) continue;
    });
  }
  ibv_wc wc;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  errno = kUntouched;
  int polls = 0, result = 0;
  while (errno == kUntouched && result == 0 &&
         (polls < 200 || std::chrono::steady_clock::now() < end)) {
    result = ibv_poll_cq(cq.get(), 1, &wc);
    ++polls;
  }
  EXPECT_EQ(errno, kUntouched) << "after " << polls << " polls";
  EXPECT_EQ(result, 0);
  stopping = true;
  for (std::thread& thread : spinners) thread.join();
}

}  // namespace
}  // namespace rocemu::system_test
