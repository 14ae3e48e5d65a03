// Attempts of each function of verbs.h that can fail.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/system/call_faults.h"

namespace rocemu::system_test {

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
  all["ibv_alloc_pd"] = makes([this] { return ibv_alloc_pd(context.get()); }, ibv_dealloc_pd);
  all["ibv_dealloc_pd"] = [this](const Under& under) {
    const int of_parent = ending(under, make_parent_domain(), ibv_dealloc_pd);
    const int of_pd = ending(under, ibv_alloc_pd(context.get()), ibv_dealloc_pd);
    EXPECT_EQ(of_parent, of_pd);
    return of_pd;
  };
  all["ibv_import_pd"] = makes([this] { return ibv_import_pd(context.get(), pd->handle); },
                               [](ibv_pd* made) { return ibv_unimport_pd(made), 0; });
  all["ibv_alloc_td"] = makes([this] { return make_td(); }, ibv_dealloc_td);
  all["ibv_dealloc_td"] = ends([this] { return make_td(); }, ibv_dealloc_td);
  all["ibv_alloc_parent_domain"] = makes([this] { return make_parent_domain(); }, ibv_dealloc_pd);
  all["ibv_open_xrcd"] = makes([this] { return make_xrcd(); }, ibv_close_xrcd);
  all["ibv_close_xrcd"] = ends([this] { return make_xrcd(); }, ibv_close_xrcd);
  // ---- Memory ----
  all["ibv_reg_mr"] = makes([this] { return region(); }, ibv_dereg_mr);
  all["ibv_reg_mr_iova"] = makes(
      [this] {
        return ibv_reg_mr_iova(pd.get(), slot(2), kSlot, elsewhere(), IBV_ACCESS_LOCAL_WRITE);
      },
      ibv_dereg_mr);
  all["ibv_reg_mr_iova2"] = makes(
      [this] {
        return ibv_reg_mr_iova2(pd.get(), slot(2), kSlot, elsewhere(), IBV_ACCESS_LOCAL_WRITE);
      },
      ibv_dereg_mr);
#ifdef HAS_ibv_reg_mr_ex
  all["ibv_reg_mr_ex"] = makes(
      [this] {
        ibv_mr_init_attr init{};
        init.comp_mask = IBV_REG_MR_MASK_ADDR;
        init.addr = slot(2);
        init.length = kSlot;
        init.access = IBV_ACCESS_LOCAL_WRITE;
        return ibv_reg_mr_ex(pd.get(), &init);
      },
      ibv_dereg_mr);
#endif
#ifdef HAS_ibv_reg_buf_mr
  all["ibv_reg_buf_mr"] = [this](const Under& under) {
    ibv_buf* buf = nullptr;
    void* address = ibv_alloc_buf(pd.get(), kSlot, &buf);
    const int error = making(
        under,
        [&] { return ibv_reg_buf_mr(pd.get(), buf, address, kSlot, IBV_ACCESS_LOCAL_WRITE); },
        ibv_dereg_mr);
    ibv_free_buf(buf);
    return error;
  };
#endif
  all["ibv_alloc_null_mr"] = makes([this] { return ibv_alloc_null_mr(pd.get()); }, ibv_dereg_mr);
  all["ibv_reg_dm_mr"] = [this](const Under& under) {
    ibv_dm* dm = make_dm();
    const int error = making(
        under, [&] { return ibv_reg_dm_mr(pd.get(), dm, 0, 4096, IBV_ACCESS_ZERO_BASED); },
        ibv_dereg_mr);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    return error;
  };
  all["ibv_reg_dmabuf_mr"] = [this](const Under& under) {
    const int file = memfd_create("memory", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, 4096), 0);
    const int error = making(
        under,
        [&] { return ibv_reg_dmabuf_mr(pd.get(), 0, 4096, 0, file, IBV_ACCESS_LOCAL_WRITE); },
        ibv_dereg_mr);
    close(file);
    return error;
  };
  all["ibv_rereg_mr"] = [this](const Under& under) {
    const MrPtr own(region());
    return under([&] {
      const int result = ibv_rereg_mr(own.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                      IBV_ACCESS_LOCAL_WRITE);
      // ibv_rereg_mr(3): the result of a failure is an ibv_rereg_mr_err_code, so errno has the
      // error
      return result == 0 ? 0 : errno;
    });
  };
  all["ibv_dereg_mr"] = ends([this] { return region(); }, ibv_dereg_mr);
  all["ibv_import_mr"] = makes([this] { return ibv_import_mr(pd.get(), mr->handle); },
                               [](ibv_mr* made) { return ibv_unimport_mr(made), 0; });
  all["ibv_advise_mr"] = [this](const Under& under) {
    const MrPtr on_demand(
        ibv_reg_mr(pd.get(), slot(2), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
    ibv_sge range{reinterpret_cast<uint64_t>(slot(2)), 64, on_demand->lkey};
    return under([&] {
      return failure(ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH,
                                   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &range, 1));
    });
  };
  all["ibv_alloc_mw"] =
      makes([this] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); }, ibv_dealloc_mw);
  all["ibv_dealloc_mw"] =
      ends([this] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); }, ibv_dealloc_mw);
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
  all["ibv_alloc_dm"] = makes([this] { return make_dm(); }, ibv_free_dm);
  all["ibv_free_dm"] = ends([this] { return make_dm(); }, ibv_free_dm);
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
  all["ibv_create_comp_channel"] =
      makes([this] { return ibv_create_comp_channel(context.get()); }, ibv_destroy_comp_channel);
  all["ibv_create_cq"] = makes(
      [this] { return ibv_create_cq(context.get(), 4, nullptr, nullptr, 0); }, ibv_destroy_cq);
  all["ibv_create_cq_ex"] = makes([this] { return make_cq_ex(); }, destroy_cq_ex);
  all["ibv_resize_cq"] = [this](const Under& under) {
    return under([&] { return failure(ibv_resize_cq(cq.get(), 128)); });
  };
  all["ibv_modify_cq"] = [this](const Under& under) {
    ibv_modify_cq_attr attr{};
    attr.attr_mask = IBV_CQ_ATTR_MODERATE;
    attr.moderate = {.cq_count = 1, .cq_period = 0};
    return under([&] { return failure(ibv_modify_cq(cq.get(), &attr)); });
  };
  all["ibv_destroy_cq"] =
      ends([this] { return ibv_create_cq(context.get(), 4, nullptr, nullptr, 0); }, ibv_destroy_cq);
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
      ibv_end_poll(extended);  // needed even after an error
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
  all["ibv_create_qp_ex"] = makes([this] { return make_qp(); }, ibv_destroy_qp);
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
  all["ibv_destroy_qp"] = ends([this] { return make_qp(); }, ibv_destroy_qp);
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
  all["ibv_create_ah"] = makes([this] { return make_ah(); }, ibv_destroy_ah);
  all["ibv_create_ah_from_wc"] = [this](const Under& under) {
    // A UD datagram over IPv4 has the IP header in the second half of the GRH.
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
  all["ibv_destroy_ah"] = ends([this] { return make_ah(); }, ibv_destroy_ah);
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
  all["ibv_create_srq"] = makes([this] { return make_srq(); }, ibv_destroy_srq);
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
  all["ibv_destroy_srq"] = ends([this] { return make_srq(); }, ibv_destroy_srq);
  return all;
}

}  // namespace rocemu::system_test
