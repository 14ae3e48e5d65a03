// Calls that a rule can make fail, each with the objects that it needs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <functional>
#include <map>
#include <string>

#include "tests/system/faults_page.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {

/// Makes a call while a rule applies.
class Under {
 public:
  explicit Under(std::string rule) : rule_(std::move(rule)) {}

  /// Returns the errno of the failed call, or 0 if it does not fail.
  int operator()(const std::function<int()>& call) const {
    if (!rule_.empty()) inject(rule_);
    errno = 0;
    const int result = call();
    if (!rule_.empty()) ask_daemon(R"({"command":"clear"})");
    return result;
  }

 private:
  std::string rule_;
};

/// Returns the errno of a function that returns 0, an errno value, or -1 with errno.
inline int failure(int result) {
  return result == -1 ? errno : result;
}
/// Returns the errno of a function that returns an object, or null with errno.
inline int failure(const void* made) {
  return made == nullptr ? errno : 0;
}

using Attempt = std::function<int(const Under&)>;

/// All objects that a verb may need.
class Verbs : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    cq = create_cq();
    qp = create_qp(cq.get(), cq.get());
    ASSERT_NO_FATAL_FAILURE(connect_to_itself(qp.get()));
  }
  void TearDown() override {
    ask_daemon(R"({"command":"clear"})");
    qp.reset();
    cq.reset();
    mr.reset();
    pd.reset();
    context.reset();
  }

  void connect_to_itself(ibv_qp* own) {
    ASSERT_NO_FATAL_FAILURE(to_init(own));
    ASSERT_NO_FATAL_FAILURE(to_rtr(own, own->qp_num));
    ASSERT_NO_FATAL_FAILURE(to_rts(own));
  }

  /// Calls `make` while the rule applies, and then `end` for the created object. Returns the error
  /// of `make`.
  template <class Make, class End>
  static int making(const Under& under, Make make, End end) {
    return under([&] {
      auto* made = make();
      const int error = failure(made);
      if (made != nullptr) {
        EXPECT_EQ(end(made), 0);
      }
      return error;
    });
  }
  /// Creates an object with `make`, and calls `end` for it while the rule applies. If that fails,
  /// the object still exists. Returns the error of `end`.
  template <class Made, class End>
  static int ending(const Under& under, Made* made, End end) {
    EXPECT_NE(made, nullptr) << std::strerror(errno);
    if (made == nullptr) return -1;
    const int error = under([&] { return failure(end(made)); });
    if (error != 0) {
      EXPECT_EQ(end(made), 0);
    }
    return error;
  }

  /// Return an attempt that creates an object, or destroys it, while the rule applies.
  template <class Make, class End>
  static Attempt makes(Make make, End end) {
    return [=](const Under& under) { return making(under, make, end); };
  }
  template <class Make, class End>
  static Attempt ends(Make make, End end) {
    return [=](const Under& under) { return ending(under, make(), end); };
  }

  ibv_srq* make_srq() {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    return ibv_create_srq(pd.get(), &init);
  }
  ibv_xrcd* make_xrcd() {
    ibv_xrcd_init_attr init{};
    init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    init.fd = -1;
    init.oflags = O_CREAT;
    return ibv_open_xrcd(context.get(), &init);
  }
  ibv_srq* make_xrc_srq(ibv_xrcd* xrcd) {
    ibv_srq_init_attr_ex init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pd.get();
    init.xrcd = xrcd;
    init.cq = cq.get();
    return ibv_create_srq_ex(context.get(), &init);
  }
  ibv_td* make_td() {
    ibv_td_init_attr init{};
    return ibv_alloc_td(context.get(), &init);
  }
  ibv_dm* make_dm() {
    ibv_alloc_dm_attr init{};
    init.length = 4096;
    return ibv_alloc_dm(context.get(), &init);
  }
  ibv_pd* make_parent_domain() {
    ibv_parent_domain_init_attr init{};
    init.pd = pd.get();
    return ibv_alloc_parent_domain(context.get(), &init);
  }
  ibv_cq_ex* make_cq_ex() {
    ibv_cq_init_attr_ex init{};
    init.cqe = 16;
    init.wc_flags = IBV_WC_STANDARD_FLAGS;
    return ibv_create_cq_ex(context.get(), &init);
  }
  static int destroy_cq_ex(ibv_cq_ex* made) { return ibv_destroy_cq(ibv_cq_ex_to_cq(made)); }
  ibv_qp_init_attr_ex qp_init() {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = pd.get();
    return init;
  }
  ibv_qp* make_qp(ibv_qp_type type = IBV_QPT_RC, uint64_t operations = 0) {
    ibv_qp_init_attr_ex init = qp_init();
    init.qp_type = type;
    if (operations != 0) init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = operations;
    return ibv_create_qp_ex(context.get(), &init);
  }
  /// Returns an iova for slot 2 with the same offset within the page, which is not its address.
  uint64_t elsewhere() { return reinterpret_cast<uint64_t>(slot(2)) + 0x100000; }
  ibv_mr* region() { return ibv_reg_mr(pd.get(), slot(2), kSlot, IBV_ACCESS_LOCAL_WRITE); }
  ibv_gid own_gid() {
    ibv_gid gid{};
    EXPECT_EQ(ibv_query_gid(context.get(), 1, 0, &gid), 0);
    return gid;
  }
  ibv_ah* make_ah() {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = own_gid();
    attr.grh.hop_limit = 64;
    return ibv_create_ah(pd.get(), &attr);
  }
  static ibv_gid group() {
    ibv_gid gid{};
    gid.raw[0] = 0xff;
    gid.raw[1] = 0x0e;
    gid.raw[15] = 9;
    return gid;
  }

  /// Calls `poll` with a CQ that gets four flushed completions. Returns the result of `poll`.
  int with_completions(const Under& under,
                       const std::function<int(ibv_cq_ex*, const Under&)>& poll) {
    ibv_cq_ex* extended = make_cq_ex();
    QpPtr flushed = create_qp(ibv_cq_ex_to_cq(extended), ibv_cq_ex_to_cq(extended));
    to_init(flushed.get());
    for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post_recv(flushed.get(), i), 0);
    to_error(flushed.get());
    const int result = poll(extended, under);
    flushed.reset();
    EXPECT_EQ(destroy_cq_ex(extended), 0);
    return result;
  }
  static int start_poll(ibv_cq_ex* extended) {
    ibv_poll_cq_attr attr{};
    int error;
    while ((error = ibv_start_poll(extended, &attr)) == ENOENT) {
    }
    return error;
  }

  std::map<std::string, Attempt> attempts();

  CqPtr cq;
  QpPtr qp;
};

/// Returns an attempt for each function of rdma_cma.h that can fail, by name.
std::map<std::string, Attempt> attempts_of_rdmacm();

}  // namespace rocemu::system_test
