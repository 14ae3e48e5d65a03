// docs/faults.md, "Calls": every function of verbs.h and rdma_cma.h that can fail does so when the
// page's rule for it is in force, with that errno, and only then. Which functions there are is
// taken from the headers, so that none can be missing.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/system/faults_page.h"
#include "tests/system/rdmacm_fixture.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

/// A rule that is in force during one call.
class Under {
 public:
  explicit Under(std::string rule) : rule_(std::move(rule)) {}

  /// What the call fails with, 0 if it does not.
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

/// Of functions that return 0, an errno value, or -1 with errno.
int failure(int result) {
  return result == -1 ? errno : result;
}
/// Of functions that return an object, or null with errno.
int failure(const void* made) {
  return made == nullptr ? errno : 0;
}

using Attempt = std::function<int(const Under&)>;

/// All objects that a verb may want.
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

  /// Calls `make` under the rule, and then `end` for what it made.
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
  /// Calls `end` under the rule for what `make` made, which is there still if that fails.
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

  /// Of `poll`, which is tried again while there is no completion.
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

std::map<std::string, Attempt> Verbs::attempts() {
  std::map<std::string, Attempt> all;
  // ---- The device ----
  all["ibv_open_device"] = [](const Under& under) {
    return under([] { return failure(open_device().get()); });
  };
  all["ibv_import_device"] = [this](const Under& under) {
    const int fd = dup(context->cmd_fd);
    return making(
        under, [&] { return ibv_import_device(fd); }, ibv_close_device);
  };
  all["ibv_query_device"] = [this](const Under& under) {
    ibv_device_attr attr;
    return under([&] { return failure(ibv_query_device(context.get(), &attr)); });
  };
  all["ibv_query_device_ex"] = [this](const Under& under) {
    ibv_device_attr_ex attr;
    return under([&] { return failure(ibv_query_device_ex(context.get(), nullptr, &attr)); });
  };
  all["ibv_query_rt_values_ex"] = [this](const Under& under) {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return under([&] { return failure(ibv_query_rt_values_ex(context.get(), &values)); });
  };
  all["ibv_query_port"] = [this](const Under& under) {
    ibv_port_attr attr;
    return under([&] { return failure(ibv_query_port(context.get(), 1, &attr)); });
  };
  // ---- Domains ----
  all["ibv_alloc_pd"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_alloc_pd(context.get()); }, ibv_dealloc_pd);
  };
  all["ibv_dealloc_pd"] = [this](const Under& under) {
    const int of_parent = ending(under, make_parent_domain(), ibv_dealloc_pd);
    const int of_pd = ending(under, ibv_alloc_pd(context.get()), ibv_dealloc_pd);
    EXPECT_EQ(of_parent, of_pd);
    return of_pd;
  };
  all["ibv_import_pd"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_import_pd(context.get(), pd->handle); },
        [](ibv_pd* made) { return ibv_unimport_pd(made), 0; });
  };
  all["ibv_alloc_td"] = [this](const Under& under) {
    return making(
        under, [&] { return make_td(); }, ibv_dealloc_td);
  };
  all["ibv_dealloc_td"] = [this](const Under& under) {
    return ending(under, make_td(), ibv_dealloc_td);
  };
  all["ibv_alloc_parent_domain"] = [this](const Under& under) {
    return making(
        under, [&] { return make_parent_domain(); }, ibv_dealloc_pd);
  };
  all["ibv_open_xrcd"] = [this](const Under& under) {
    return making(
        under, [&] { return make_xrcd(); }, ibv_close_xrcd);
  };
  all["ibv_close_xrcd"] = [this](const Under& under) {
    return ending(under, make_xrcd(), ibv_close_xrcd);
  };
  // ---- Memory ----
  all["ibv_reg_mr"] = [this](const Under& under) {
    return making(
        under, [&] { return region(); }, ibv_dereg_mr);
  };
  all["ibv_reg_mr_iova"] = [this](const Under& under) {
    return making(
        under,
        [&] { return ibv_reg_mr_iova(pd.get(), slot(2), kSlot, 0x1000, IBV_ACCESS_LOCAL_WRITE); },
        ibv_dereg_mr);
  };
  all["ibv_reg_mr_iova2"] = [this](const Under& under) {
    return making(
        under,
        [&] { return ibv_reg_mr_iova2(pd.get(), slot(2), kSlot, 0x1000, IBV_ACCESS_LOCAL_WRITE); },
        ibv_dereg_mr);
  };
  all["ibv_alloc_null_mr"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_alloc_null_mr(pd.get()); }, ibv_dereg_mr);
  };
  all["ibv_reg_dm_mr"] = [this](const Under& under) {
    ibv_dm* dm = make_dm();
    const int error = making(
        under, [&] { return ibv_reg_dm_mr(pd.get(), dm, 0, 4096, IBV_ACCESS_ZERO_BASED); },
        ibv_dereg_mr);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    return error;
  };
  all["ibv_rereg_mr"] = [this](const Under& under) {
    const MrPtr own(region());
    return under([&] {
      const int result = ibv_rereg_mr(own.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                      IBV_ACCESS_LOCAL_WRITE);
      return result == 0 ? 0 : errno;  // ibv_rereg_mr(3): otherwise an ibv_rereg_mr_err_code
    });
  };
  all["ibv_dereg_mr"] = [this](const Under& under) {
    return ending(under, region(), ibv_dereg_mr);
  };
  all["ibv_import_mr"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_import_mr(pd.get(), mr->handle); },
        [](ibv_mr* made) { return ibv_unimport_mr(made), 0; });
  };
  all["ibv_advise_mr"] = [this](const Under& under) {
    const MrPtr on_demand(
        ibv_reg_mr(pd.get(), slot(2), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
    ibv_sge range{reinterpret_cast<uint64_t>(slot(2)), 64, on_demand->lkey};
    return under([&] {
      return failure(ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH,
                                   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &range, 1));
    });
  };
  all["ibv_alloc_mw"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); }, ibv_dealloc_mw);
  };
  all["ibv_dealloc_mw"] = [this](const Under& under) {
    return ending(under, ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1), ibv_dealloc_mw);
  };
  all["ibv_bind_mw"] = [this](const Under& under) {
    ibv_mr* bound =
        ibv_reg_mr(pd.get(), slot(2), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ibv_mw* mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1);
    ibv_mw_bind bind{};
    bind.bind_info = {.mr = bound,
                      .addr = reinterpret_cast<uint64_t>(slot(2)),
                      .length = 64,
                      .mw_access_flags = IBV_ACCESS_REMOTE_READ};
    bind.send_flags = IBV_SEND_SIGNALED;
    const int error = under([&] { return failure(ibv_bind_mw(qp.get(), mw, &bind)); });
    if (error == 0) poll_for(cq.get(), 1);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(ibv_dereg_mr(bound), 0);
    return error;
  };
  all["ibv_alloc_dm"] = [this](const Under& under) {
    return making(
        under, [&] { return make_dm(); }, ibv_free_dm);
  };
  all["ibv_free_dm"] = [this](const Under& under) { return ending(under, make_dm(), ibv_free_dm); };
  all["ibv_memcpy_to_dm"] = [this](const Under& under) {
    ibv_dm* dm = make_dm();
    const int error = under([&] { return failure(ibv_memcpy_to_dm(dm, 0, slot(0), 64)); });
    EXPECT_EQ(ibv_free_dm(dm), 0);
    return error;
  };
  all["ibv_memcpy_from_dm"] = [this](const Under& under) {
    ibv_dm* dm = make_dm();
    const int error = under([&] { return failure(ibv_memcpy_from_dm(slot(0), dm, 0, 64)); });
    EXPECT_EQ(ibv_free_dm(dm), 0);
    return error;
  };
  // ---- Completion queues ----
  all["ibv_create_comp_channel"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_create_comp_channel(context.get()); }, ibv_destroy_comp_channel);
  };
  all["ibv_create_cq"] = [this](const Under& under) {
    return making(
        under, [&] { return ibv_create_cq(context.get(), 4, nullptr, nullptr, 0); },
        ibv_destroy_cq);
  };
  all["ibv_create_cq_ex"] = [this](const Under& under) {
    return making(
        under, [&] { return make_cq_ex(); }, destroy_cq_ex);
  };
  all["ibv_resize_cq"] = [this](const Under& under) {
    return under([&] { return failure(ibv_resize_cq(cq.get(), 128)); });
  };
  all["ibv_modify_cq"] = [this](const Under& under) {
    ibv_modify_cq_attr attr{};
    attr.attr_mask = IBV_CQ_ATTR_MODERATE;
    attr.moderate = {.cq_count = 1, .cq_period = 0};
    return under([&] { return failure(ibv_modify_cq(cq.get(), &attr)); });
  };
  all["ibv_destroy_cq"] = [this](const Under& under) {
    return ending(under, ibv_create_cq(context.get(), 4, nullptr, nullptr, 0), ibv_destroy_cq);
  };
  all["ibv_poll_cq"] = [this](const Under& under) {
    ibv_wc wc;
    return under([&] { return ibv_poll_cq(cq.get(), 1, &wc) < 0 ? errno : 0; });
  };
  all["ibv_req_notify_cq"] = [this](const Under& under) {
    return under([&] { return failure(ibv_req_notify_cq(cq.get(), 0)); });
  };
  all["ibv_start_poll"] = [this](const Under& under) {
    return with_completions(under, [](ibv_cq_ex* extended, const Under& here) {
      const int error = here([&] { return start_poll(extended); });
      if (error == 0) ibv_end_poll(extended);
      return error;
    });
  };
  all["ibv_next_poll"] = [this](const Under& under) {
    return with_completions(under, [](ibv_cq_ex* extended, const Under& here) {
      EXPECT_EQ(start_poll(extended), 0);
      const int error = here([&] {
        int result;
        while ((result = ibv_next_poll(extended)) == ENOENT) {
        }
        return result;
      });
      ibv_end_poll(extended);  // also after an error
      return error;
    });
  };
  // ---- Queue pairs ----
  all["ibv_create_qp"] = [this](const Under& under) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = qp_init().cap;
    return making(
        under, [&] { return ibv_create_qp(pd.get(), &init); }, ibv_destroy_qp);
  };
  all["ibv_create_qp_ex"] = [this](const Under& under) {
    return making(
        under, [&] { return make_qp(); }, ibv_destroy_qp);
  };
  all["ibv_open_qp"] = [this](const Under& under) {
    ibv_xrcd* xrcd = make_xrcd();
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_XRC_RECV;
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = xrcd;
    ibv_qp* target = ibv_create_qp_ex(context.get(), &init);
    EXPECT_NE(target, nullptr);
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = target->qp_num;
    attr.xrcd = xrcd;
    attr.qp_type = IBV_QPT_XRC_RECV;
    const int error = making(
        under, [&] { return ibv_open_qp(context.get(), &attr); }, ibv_destroy_qp);
    EXPECT_EQ(ibv_destroy_qp(target), 0);
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
    return error;
  };
  all["ibv_modify_qp"] = [this](const Under& under) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    return under([&] { return failure(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE)); });
  };
  all["ibv_query_qp"] = [this](const Under& under) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    return under([&] { return failure(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init)); });
  };
  all["ibv_destroy_qp"] = [this](const Under& under) {
    return ending(under, make_qp(), ibv_destroy_qp);
  };
  all["ibv_post_send"] = [this](const Under& under) {
    EXPECT_EQ(post_recv(qp.get(), 1), 0);
    const int error = under([&] { return failure(post_send(qp.get(), 2)); });
    if (error == 0) poll_for(cq.get(), 2);
    return error;
  };
  all["ibv_wr_complete"] = [this](const Under& under) {
    QpPtr extended(make_qp(IBV_QPT_RC, IBV_QP_EX_WITH_SEND));
    connect_to_itself(extended.get());
    EXPECT_EQ(post_recv(extended.get(), 1), 0);
    ibv_qp_ex* builder = ibv_qp_to_qp_ex(extended.get());
    const int error = under([&] {
      ibv_wr_start(builder);
      builder->wr_id = 2;
      builder->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_send(builder);
      ibv_wr_set_sge(builder, mr->lkey, reinterpret_cast<uint64_t>(slot(0)), 16);
      return failure(ibv_wr_complete(builder));
    });
    if (error == 0) poll_for(cq.get(), 2);
    return error;
  };
  all["ibv_post_recv"] = [this](const Under& under) {
    return under([&] { return failure(post_recv(qp.get(), 3)); });
  };
  all["ibv_create_ah"] = [this](const Under& under) {
    return making(
        under, [&] { return make_ah(); }, ibv_destroy_ah);
  };
  all["ibv_create_ah_from_wc"] = [this](const Under& under) {
    // As a UD datagram over IPv4 comes: the IP header in the second half of the GRH's place.
    const ibv_gid gid = own_gid();
    ibv_grh grh{};
    auto* ip = reinterpret_cast<uint8_t*>(&grh) + 20;
    ip[0] = 0x45;
    ip[8] = 64;
    memcpy(ip + 12, gid.raw + 12, 4);
    memcpy(ip + 16, gid.raw + 12, 4);
    ibv_wc wc{};
    wc.wc_flags = IBV_WC_GRH;
    return making(
        under, [&] { return ibv_create_ah_from_wc(pd.get(), &wc, &grh, 1); }, ibv_destroy_ah);
  };
  all["ibv_destroy_ah"] = [this](const Under& under) {
    return ending(under, make_ah(), ibv_destroy_ah);
  };
  all["ibv_attach_mcast"] = [this](const Under& under) {
    const QpPtr ud(make_qp(IBV_QPT_UD));
    const ibv_gid to = group();
    const int error = under([&] { return failure(ibv_attach_mcast(ud.get(), &to, 0)); });
    if (error == 0) {
      EXPECT_EQ(ibv_detach_mcast(ud.get(), &to, 0), 0);
    }
    return error;
  };
  all["ibv_detach_mcast"] = [this](const Under& under) {
    const QpPtr ud(make_qp(IBV_QPT_UD));
    const ibv_gid from = group();
    EXPECT_EQ(ibv_attach_mcast(ud.get(), &from, 0), 0);
    const int error = under([&] { return failure(ibv_detach_mcast(ud.get(), &from, 0)); });
    if (error != 0) {
      EXPECT_EQ(ibv_detach_mcast(ud.get(), &from, 0), 0);
    }
    return error;
  };
  // ---- Shared receive queues ----
  all["ibv_create_srq"] = [this](const Under& under) {
    return making(
        under, [&] { return make_srq(); }, ibv_destroy_srq);
  };
  const auto with_xrc = [this](auto use) {
    ibv_xrcd* xrcd = make_xrcd();
    const int error = use(xrcd);
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
    return error;
  };
  all["ibv_create_srq_ex"] = [this, with_xrc](const Under& under) {
    return with_xrc([&](ibv_xrcd* xrcd) {
      return making(
          under, [&] { return make_xrc_srq(xrcd); }, ibv_destroy_srq);
    });
  };
  all["ibv_get_srq_num"] = [this, with_xrc](const Under& under) {
    return with_xrc([&](ibv_xrcd* xrcd) {
      ibv_srq* srq = make_xrc_srq(xrcd);
      uint32_t number = 0;
      const int error = under([&] { return failure(ibv_get_srq_num(srq, &number)); });
      EXPECT_EQ(ibv_destroy_srq(srq), 0);
      return error;
    });
  };
  const auto with_srq = [this](const Under& under, const std::function<int(ibv_srq*)>& call) {
    ibv_srq* srq = make_srq();
    const int error = under([&] { return failure(call(srq)); });
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    return error;
  };
  all["ibv_modify_srq"] = [with_srq](const Under& under) {
    return with_srq(under, [](ibv_srq* srq) {
      ibv_srq_attr attr{.max_wr = 0, .max_sge = 0, .srq_limit = 1};
      return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
    });
  };
  all["ibv_query_srq"] = [with_srq](const Under& under) {
    return with_srq(under, [](ibv_srq* srq) {
      ibv_srq_attr attr;
      return ibv_query_srq(srq, &attr);
    });
  };
  all["ibv_post_srq_recv"] = [with_srq](const Under& under) {
    return with_srq(under, [](ibv_srq* srq) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad;
      return ibv_post_srq_recv(srq, &wr, &bad);
    });
  };
  all["ibv_destroy_srq"] = [this](const Under& under) {
    return ending(under, make_srq(), ibv_destroy_srq);
  };
  return all;
}

/// Both ends of a connection, as far as a call wants it.
class Conversation {
 public:
  Conversation() {
    EXPECT_EQ(rdma_create_id(passive_.get(), &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_create_id(active_.get(), &client, nullptr, RDMA_PS_TCP), 0);
  }
  ~Conversation() {
    for (rdma_cm_id* id : {client, server, listener}) {
      if (id != nullptr) {
        EXPECT_EQ(rdma_destroy_id(id), 0);
      }
    }
  }

  int listen() { return rdma_listen(listener, 4); }
  int resolve_addr() {
    sockaddr_in to = address(INADDR_LOOPBACK, rdma_get_src_port(listener));
    return rdma_resolve_addr(client, nullptr, reinterpret_cast<sockaddr*>(&to), 2000);
  }
  int connect() {
    rdma_conn_param param = parameters();
    return rdma_connect(client, &param);
  }
  int accept() {
    rdma_conn_param param = parameters();
    return rdma_accept(server, &param);
  }

  void to_address() {
    EXPECT_EQ(listen(), 0);
    EXPECT_EQ(resolve_addr(), 0);
    active_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  void to_route() {
    to_address();
    EXPECT_EQ(rdma_resolve_route(client, 2000), 0);
    active_.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  void to_request() {
    to_route();
    EXPECT_EQ(connect(), 0);
    server = passive_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  }
  void to_response() {
    to_request();
    EXPECT_EQ(accept(), 0);
    active_.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  void to_connection() {
    to_response();
    EXPECT_EQ(rdma_establish(client), 0);
    passive_.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  EventChannel& active() { return active_; }

  static sockaddr_in address(uint32_t ip, uint16_t big_endian_port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = big_endian_port;
    result.sin_addr.s_addr = htonl(ip);
    return result;
  }

  rdma_cm_id* listener = nullptr;
  rdma_cm_id* client = nullptr;
  rdma_cm_id* server = nullptr;

 private:
  static rdma_conn_param parameters() {
    static uint32_t next_qpn = 0x4000;
    rdma_conn_param param{};
    param.qp_num = next_qpn++;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }

  EventChannel active_, passive_;
};

/// Of a call that is made when the conversation has come so far.
template <class Call>
Attempt after(void (Conversation::*so_far)(), Call call) {
  return [so_far, call](const Under& under) {
    Conversation conversation;
    if (so_far != nullptr) (conversation.*so_far)();
    return under([&] { return failure(call(conversation)); });
  };
}

/// Of a call for an id that stands for a member of a multicast group.
Attempt of_member(const std::function<int(const Under&, EventChannel&, rdma_cm_id*)>& use) {
  return [use](const Under& under) {
    EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_UDP), 0);
    sockaddr_in any = Conversation::address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)), 0);
    const int error = use(under, channel, id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    return error;
  };
}

std::map<std::string, Attempt> attempts_of_rdmacm() {
  using C = Conversation;
  std::map<std::string, Attempt> all;
  all["rdma_create_event_channel"] = [](const Under& under) {
    return under([] {
      rdma_event_channel* channel = rdma_create_event_channel();
      const int error = failure(channel);
      if (channel != nullptr) rdma_destroy_event_channel(channel);
      return error;
    });
  };
  all["rdma_create_id"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    const int error =
        under([&] { return failure(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP)); });
    if (error == 0) {
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    return error;
  };
  all["rdma_destroy_id"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP), 0);
    const int error = under([&] { return failure(rdma_destroy_id(id)); });
    if (error != 0) {
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    return error;
  };
  all["rdma_create_ep"] = [](const Under& under) {
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", nullptr, &hints, &found), 0);
    const int error = under([&] {
      rdma_cm_id* id = nullptr;
      const int result = failure(rdma_create_ep(&id, found, nullptr, nullptr));
      if (result == 0) rdma_destroy_ep(id);
      return result;
    });
    rdma_freeaddrinfo(found);
    return error;
  };
  all["rdma_bind_addr"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = C::address(INADDR_LOOPBACK, 0);
    const int error =
        under([&] { return failure(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any))); });
    EXPECT_EQ(rdma_destroy_id(id), 0);
    return error;
  };
  all["rdma_listen"] = after(nullptr, [](C& c) { return c.listen(); });
  all["rdma_resolve_addr"] = after(nullptr, [](C& c) { return c.resolve_addr(); });
  all["rdma_resolve_route"] =
      after(&C::to_address, [](C& c) { return rdma_resolve_route(c.client, 2000); });
  all["rdma_connect"] = after(&C::to_route, [](C& c) { return c.connect(); });
  all["rdma_accept"] = after(&C::to_request, [](C& c) { return c.accept(); });
  all["rdma_reject"] =
      after(&C::to_request, [](C& c) { return rdma_reject(c.server, nullptr, 0); });
  all["rdma_reject_ece"] =
      after(&C::to_request, [](C& c) { return rdma_reject_ece(c.server, nullptr, 0); });
  all["rdma_establish"] = after(&C::to_response, [](C& c) { return rdma_establish(c.client); });
  all["rdma_notify"] =
      after(&C::to_response, [](C& c) { return rdma_notify(c.server, IBV_EVENT_COMM_EST); });
  all["rdma_disconnect"] = after(&C::to_connection, [](C& c) { return rdma_disconnect(c.client); });
  all["rdma_set_option"] = after(nullptr, [](C& c) {
    uint8_t type_of_service = 32;
    return rdma_set_option(c.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &type_of_service,
                           sizeof type_of_service);
  });
  all["rdma_init_qp_attr"] = after(&C::to_route, [](C& c) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    int mask = 0;
    return rdma_init_qp_attr(c.client, &attr, &mask);
  });
  all["rdma_migrate_id"] = [](const Under& under) {
    Conversation conversation;
    const EventChannel other;
    const int error =
        under([&] { return failure(rdma_migrate_id(conversation.client, other.get())); });
    EXPECT_EQ(rdma_destroy_id(conversation.client), 0);  // before that channel
    conversation.client = nullptr;
    return error;
  };
  const auto create_qp = [](bool extended) {
    return after(&C::to_address, [extended](C& c) {
      ibv_qp_init_attr_ex init{};
      init.qp_type = IBV_QPT_RC;
      init.cap = {.max_send_wr = 4,
                  .max_recv_wr = 4,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
      ibv_qp_init_attr basic{};
      basic.qp_type = init.qp_type;
      basic.cap = init.cap;
      const int result =
          extended ? rdma_create_qp_ex(c.client, &init) : rdma_create_qp(c.client, nullptr, &basic);
      if (result == 0) rdma_destroy_qp(c.client);
      return result;
    });
  };
  all["rdma_create_qp"] = create_qp(false);
  all["rdma_create_qp_ex"] = create_qp(true);
  const auto join = [](EventChannel&, rdma_cm_id* id, bool extended) {
    static sockaddr_in group;
    group = C::address(0xef010203, 0);  // 239.1.2.3
    rdma_cm_join_mc_attr_ex attr{};
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
    attr.addr = reinterpret_cast<sockaddr*>(&group);
    return extended ? rdma_join_multicast_ex(id, &attr, nullptr)
                    : rdma_join_multicast(id, attr.addr, nullptr);
  };
  for (const bool extended : {false, true}) {
    all[extended ? "rdma_join_multicast_ex" : "rdma_join_multicast"] =
        of_member([join, extended](const Under& under, EventChannel& channel, rdma_cm_id* id) {
          const int error = under([&] { return failure(join(channel, id, extended)); });
          if (error == 0) channel.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
          return error;
        });
  }
  all["rdma_leave_multicast"] =
      of_member([join](const Under& under, EventChannel& channel, rdma_cm_id* id) {
        EXPECT_EQ(join(channel, id, false), 0);
        channel.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
        sockaddr_in group = C::address(0xef010203, 0);
        return under(
            [&] { return failure(rdma_leave_multicast(id, reinterpret_cast<sockaddr*>(&group))); });
      });
  all["rdma_get_cm_event"] = [](const Under& under) {
    Conversation conversation;
    EXPECT_EQ(conversation.listen(), 0);
    const int error = under([&] {
      EXPECT_EQ(conversation.resolve_addr(), 0);
      rdma_cm_event* event = nullptr;
      const int result = failure(rdma_get_cm_event(conversation.active().get(), &event));
      if (result == 0) {
        EXPECT_EQ(rdma_ack_cm_event(event), 0);
      }
      return result;
    });
    // The event that the call failed to get is there still.
    if (error != 0) conversation.active().expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    return error;
  };
  all["rdma_get_request"] = [](const Under& under) {
    rdma_cm_id* listener = nullptr;  // without a channel: synchronous
    EXPECT_EQ(rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = C::address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_listen(listener, 4), 0);
    Conversation conversation;
    EXPECT_EQ(rdma_destroy_id(conversation.listener), 0);
    conversation.listener = listener;
    EXPECT_EQ(conversation.resolve_addr(), 0);
    conversation.active().expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(conversation.client, 2000), 0);
    conversation.active().expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return under([&] {
      EXPECT_EQ(conversation.connect(), 0);
      rdma_cm_id* server = nullptr;
      const int error = failure(rdma_get_request(listener, &server));
      if (error == 0) {
        EXPECT_EQ(rdma_destroy_id(server), 0);
      }
      return error;
    });
  };
  return all;
}

int errno_in(const std::string& rule) {
  static const std::map<std::string, int> kNames = {
      {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},
      {"EFAULT", EFAULT}, {"EINVAL", EINVAL}, {"EIO", EIO},
      {"EMFILE", EMFILE}, {"ENODEV", ENODEV}, {"EADDRINUSE", EADDRINUSE},
      {"ENOMEM", ENOMEM}, {"ENOENT", ENOENT}, {"ENETUNREACH", ENETUNREACH}};
  std::smatch word;
  if (!std::regex_search(rule, word, std::regex("errno: ([A-Z]+)"))) return -1;
  const auto found = kNames.find(word[1]);
  return found == kNames.end() ? -1 : found->second;
}

void expect_failures(const std::map<std::string, Attempt>& attempts) {
  for (const auto& [name, attempt] : attempts) {
    SCOPED_TRACE(name);
    const std::string rule = rule_for(name);
    ASSERT_NE(rule, "none");
    EXPECT_EQ(attempt(Under(rule)), errno_in(rule)) << rule;
    EXPECT_EQ(attempt(Under("")), 0);
  }
}

TEST_F(Verbs, EachFailsWhenARuleSaysSo) {
  expect_failures(attempts());
}

TEST(RdmaCmCalls, EachFailsWhenARuleSaysSo) {
  EventChannel();  // librdmacm has opened its devices
  expect_failures(attempts_of_rdmacm());
}

/// All functions of a header; those in its macros and comments are some of them.
std::set<std::string> functions_of(const char* header, const std::string& prefix) {
  const std::string text = content_of(header);
  const std::regex call("\\b(" + prefix + "_[a-z0-9_]+)\\s*\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST_F(Verbs, AllOfTheHeadersHaveARowOnThePageAndARuleIfOneCanFail) {
  std::set<std::string> tried;
  for (const auto& [name, attempt] : attempts()) tried.insert(name);
  for (const auto& [name, attempt] : attempts_of_rdmacm()) tried.insert(name);
  std::set<std::string> names = functions_of(ROCEMU_VERBS_H, "ibv");
  names.merge(functions_of(ROCEMU_RDMA_CMA_H, "rdma"));
  ASSERT_GT(names.size(), 150u);
  for (const std::string& name : names) {
    const std::string rule = rule_for(name);
    EXPECT_EQ(rule != "none", tried.contains(name)) << name << ": " << rule;
  }
}

// A rule is for what it names: opening a device asks for nothing else, and a region of one kind is
// not one of another.
TEST_F(Verbs, AreNotMadeToFailByARuleForAnother) {
  const auto attempt_of = attempts();
  const std::pair<const char*, const char*> kPairs[] = {
      {"query_device", "ibv_open_device"}, {"open_device", "ibv_query_device"},
      {"reg_mr", "ibv_alloc_null_mr"},     {"reg_mr", "ibv_reg_dm_mr"},
      {"alloc_null_mr", "ibv_reg_mr"},     {"import_device", "ibv_open_device"}};
  for (const auto& [verb, other] : kPairs) {
    SCOPED_TRACE(std::string(verb) + " and " + other);
    const std::string rule = std::string("{on: verb, verb: ") + verb + ", do: {errno: EIO}}";
    EXPECT_EQ(attempt_of.at(other)(Under(rule)), 0);
  }
}

// Each program counts by itself, but a context that is being opened is none yet: devices count.
TEST_F(Verbs, OpeningIsCountedByTheDevice) {
  inject("{on: verb, verb: open_device, nth: 2, do: {errno: EMFILE}}");
  EXPECT_NE(open_device(), nullptr);
  EXPECT_EQ(open_device(), nullptr);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_NE(open_device(), nullptr);
}

}  // namespace
}  // namespace rocemu::system_test
