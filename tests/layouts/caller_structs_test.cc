// Tests every struct that a program passes to libibverbs, with the libibverbs and the headers of
// this machine. Each struct is between guards. The provider must read and write only the part of a
// struct that exists in this version, and libibverbs must find its fields in the provider's
// objects. The tests call each verb, and each function of ibv_qp_ex and ibv_cq_ex. Run them under
// `rocemu run`. scripts/check-releases compiles this file with the headers of other releases.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <set>

#include "tests/layouts/guarded.h"
#include "tests/system/transport_fixture.h"
#include "verbs_provider/base/layout.h"
#include "verbs_provider/base/private_abi.h"

namespace rocemu::layouts {
namespace {

using system_test::AhPtr;
using system_test::ChannelPtr;
using system_test::ContextPtr;
using system_test::kGrhSize;
using system_test::kQkey;
using system_test::MrPtr;
using system_test::MwPtr;
using system_test::PdPtr;
using system_test::QpPtr;
using system_test::SrqPtr;
using system_test::XrcdPtr;

// ---- Sizes that rocemu assumes for this libibverbs ---------------------------------------------

TEST(Sizes, AreThoseOfTheHeaders) {
  ASSERT_TRUE(provider::recognize_libibverbs(reinterpret_cast<const void*>(&ibv_get_device_list)));
  EXPECT_EQ(provider::layout.context_head, offsetof(verbs_context, context));
  EXPECT_EQ(provider::layout.qp_mask_at, sizeof(ibv_qp_ex));
  EXPECT_EQ(offsetof(provider::QpEx, wr_atomic_cmp_swp), offsetof(ibv_qp_ex, wr_atomic_cmp_swp));
  EXPECT_EQ(offsetof(provider::QpEx, wr_abort), offsetof(ibv_qp_ex, wr_abort));
  EXPECT_EQ(sizeof(provider::VerbsCq), sizeof(ibv_cq_ex));
}

// ---- Queries ------------------------------------------------------------------------------------

class CallerStructs : public system_test::TransportTest {
 protected:
  template <class T>
  static T* function(const char* name) {
    return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
  }
};

TEST_F(CallerStructs, Queries) {
  Guarded<ibv_device_attr> device;
  ASSERT_EQ(ibv_query_device(context.get(), device.get()), 0);
  EXPECT_GT(device->max_qp, 0);

  Guarded<ibv_device_attr_ex> device_ex;
  Guarded<ibv_query_device_ex_input> input;
  ASSERT_EQ(ibv_query_device_ex(context.get(), input.get(), device_ex.get()), 0);
  EXPECT_EQ(device_ex->orig_attr.max_qp, device->max_qp);

  Guarded<ibv_port_attr> port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, port.get()), 0);
  EXPECT_EQ(port->state, IBV_PORT_ACTIVE);
  // Programs that were compiled with old headers call this function directly, with a struct of 48
  // bytes.
  Guarded<std::array<unsigned char, 48>> old_port;
  ASSERT_EQ(
      (ibv_query_port)(context.get(), 1, reinterpret_cast<_compat_ibv_port_attr*>(old_port.get())),
      0);
  EXPECT_EQ(std::memcmp(old_port.get(), port.get(), 40), 0);

  Guarded<ibv_gid> gid;
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, gid.get()), 0);
  Guarded<ibv_gid_entry> gid_entry;
  ASSERT_EQ(ibv_query_gid_ex(context.get(), 1, 0, gid_entry.get(), 0), 0);
  EXPECT_EQ(std::memcmp(&gid_entry->gid, gid.get(), sizeof(ibv_gid)), 0);
  Guarded<std::array<ibv_gid_entry, 64>> entries;
  EXPECT_GE(ibv_query_gid_table(context.get(), entries->data(), entries->size(), 0), 1);
  Guarded<__be16> pkey;
  ASSERT_EQ(ibv_query_pkey(context.get(), 1, 0, pkey.get()), 0);
  EXPECT_EQ(ibv_get_pkey_index(context.get(), 1, *pkey), 0);

  Guarded<ibv_values_ex> values;
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  ASSERT_EQ(ibv_query_rt_values_ex(context.get(), values.get()), 0);
  EXPECT_GT(values->raw_clock.tv_sec + values->raw_clock.tv_nsec, 0);

  if (auto* query = function<int(ibv_context*, uint32_t, uint64_t*)>("ibv_query_port_speed")) {
    Guarded<uint64_t> speed;
    const int result = query(context.get(), 1, speed.get());
    EXPECT_TRUE(result == 0 || result == EOPNOTSUPP || result == ENOTSUP) << result;
  }
}

// ---- Memory
// --------------------------------------------------------------------------------------

TEST_F(CallerStructs, Memory) {
  const uint64_t iova = 0x100000 + reinterpret_cast<uint64_t>(slot(0)) % 0x10000;
  const MrPtr elsewhere(ibv_reg_mr_iova(pd.get(), slot(0), kSlot, iova, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_EQ(elsewhere->addr, slot(0));
  const MrPtr relaxed(
      ibv_reg_mr(pd.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
  EXPECT_NE(relaxed, nullptr);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd.get(), 0, kSlot, 0, -1, IBV_ACCESS_LOCAL_WRITE), nullptr);
  const MrPtr null(ibv_alloc_null_mr(pd.get()));
  EXPECT_NE(null, nullptr);
  const MrPtr moved(ibv_reg_mr(pd.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(ibv_rereg_mr(moved.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(1), kSlot, 0),
            0);
  EXPECT_EQ(moved->addr, slot(1));

  Guarded<ibv_sge> range;
  *range = sge(0, 64);
  const MrPtr paged(
      ibv_reg_mr(pd.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
  ASSERT_NE(paged, nullptr);
  range->lkey = paged->lkey;
  EXPECT_EQ(ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, range.get(), 1), 0);

  Guarded<ibv_alloc_dm_attr> wanted;
  wanted->length = 64;
  ibv_dm* dm = ibv_alloc_dm(context.get(), wanted.get());
  ASSERT_NE(dm, nullptr);
  Guarded<std::array<char, 16>> data;
  strcpy(data->data(), "in the device");
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, data.get(), 16), 0);
  data->fill('\0');
  EXPECT_EQ(ibv_memcpy_from_dm(data.get(), dm, 8, 16), 0);
  EXPECT_STREQ(data->data(), "in the device");
  ibv_mr* dm_mr =
      ibv_reg_dm_mr(pd.get(), dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(dm_mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(dm_mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(CallerStructs, Import) {
  const ContextPtr imported(ibv_import_device(dup(context->cmd_fd)));
  ASSERT_NE(imported, nullptr);
  ibv_pd* shared = ibv_import_pd(imported.get(), pd->handle);
  ASSERT_NE(shared, nullptr);
  ibv_mr* region = ibv_import_mr(shared, mr->handle);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->lkey, mr->lkey);
  ibv_unimport_mr(region);
  ibv_unimport_pd(shared);
  if (ibv_dm* dm = ibv_import_dm(imported.get(), 1); dm != nullptr) {
    ADD_FAILURE() << "a DM that there is not";
    ibv_unimport_dm(dm);
  }
}

// ---- Other objects -----------------------------------------------------------------------------

TEST_F(CallerStructs, SharedReceiveQueues) {
  Guarded<ibv_srq_init_attr> wanted;
  wanted->attr.max_wr = 4;
  wanted->attr.max_sge = 1;
  const SrqPtr srq(ibv_create_srq(pd.get(), wanted.get()));
  ASSERT_NE(srq, nullptr);
  EXPECT_GE(wanted->attr.max_wr, 4u);
  Guarded<ibv_srq_attr> attr;
  attr->srq_limit = 1;
  EXPECT_EQ(ibv_modify_srq(srq.get(), attr.get(), IBV_SRQ_LIMIT), 0);
  Guarded<ibv_srq_attr> found;
  EXPECT_EQ(ibv_query_srq(srq.get(), found.get()), 0);
  EXPECT_EQ(found->max_wr, wanted->attr.max_wr);
  Guarded<ibv_sge> to;
  *to = sge(1, 16);
  Guarded<ibv_recv_wr> receive;
  receive->sg_list = to.get();
  receive->num_sge = 1;
  Guarded<ibv_recv_wr*> bad;
  EXPECT_EQ(ibv_post_srq_recv(srq.get(), receive.get(), bad.get()), 0);
  Guarded<ibv_ops_wr> operation;
  Guarded<ibv_ops_wr*> bad_operation;
  EXPECT_EQ(ibv_post_srq_ops(srq.get(), operation.get(), bad_operation.get()), EOPNOTSUPP);

  Guarded<ibv_xrcd_init_attr> domain;
  domain->comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain->fd = -1;
  domain->oflags = O_CREAT;
  const XrcdPtr xrcd(ibv_open_xrcd(context.get(), domain.get()));
  ASSERT_NE(xrcd, nullptr);
  Guarded<ibv_srq_init_attr_ex> wanted_xrc;
  wanted_xrc->attr.max_wr = 4;
  wanted_xrc->attr.max_sge = 1;
  wanted_xrc->comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  wanted_xrc->srq_type = IBV_SRQT_XRC;
  wanted_xrc->xrcd = xrcd.get();
  wanted_xrc->cq = cq.get();
  wanted_xrc->pd = pd.get();
  const SrqPtr xrc_srq(ibv_create_srq_ex(context.get(), wanted_xrc.get()));
  ASSERT_NE(xrc_srq, nullptr);
  Guarded<uint32_t> number;
  EXPECT_EQ(ibv_get_srq_num(xrc_srq.get(), number.get()), 0);
  EXPECT_NE(*number, 0u);

  const QpPtr target = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = xrcd.get()});
  ASSERT_NE(target, nullptr);
  Guarded<ibv_qp_open_attr> open;
  open->comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  open->qp_num = target->qp_num;
  open->xrcd = xrcd.get();
  open->qp_type = IBV_QPT_XRC_RECV;
  const QpPtr opened(ibv_open_qp(context.get(), open.get()));
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->qp_num, target->qp_num);
}

TEST_F(CallerStructs, DomainsWindowsAndAddresses) {
  Guarded<ibv_td_init_attr> thread_wanted;
  ibv_td* td = ibv_alloc_td(context.get(), thread_wanted.get());
  ASSERT_NE(td, nullptr);
  Guarded<ibv_parent_domain_init_attr> parent_wanted;
  parent_wanted->pd = pd.get();
  parent_wanted->td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context.get(), parent_wanted.get());
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);

  Guarded<ibv_ah_attr> address;
  *address = address_of_own();
  EXPECT_NE(AhPtr(ibv_create_ah(pd.get(), address.get())), nullptr);

  const QpPtr a = make_qp({}), b = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(a.get(), b.get()));
  const MwPtr window(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1));
  ASSERT_NE(window, nullptr);
  Guarded<ibv_mw_bind> bind;
  bind->wr_id = 5;
  bind->send_flags = IBV_SEND_SIGNALED;
  bind->bind_info.mr = remote_mr.get();
  bind->bind_info.addr = reinterpret_cast<uint64_t>(slot(0));
  bind->bind_info.length = 64;
  bind->bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(ibv_bind_mw(a.get(), window.get(), bind.get()), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

TEST_F(CallerStructs, EventsAndCompletionQueues) {
  const ChannelPtr channel = create_channel();
  const auto polled = create_cq(8, channel.get(), this);
  EXPECT_EQ(ibv_resize_cq(polled.get(), 16), 0);
  Guarded<ibv_modify_cq_attr> moderation;
  moderation->attr_mask = IBV_CQ_ATTR_MODERATE;
  moderation->moderate.cq_count = 1;
  const int modified = ibv_modify_cq(polled.get(), moderation.get());
  EXPECT_TRUE(modified == 0 || modified == EOPNOTSUPP) << modified;
  EXPECT_EQ(ibv_req_notify_cq(polled.get(), 0), 0);
  const QpPtr a = make_qp({.cq = polled.get()}), b = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(a.get(), b.get()));
  EXPECT_EQ(post_recv(b.get(), 2), 0);
  EXPECT_EQ(post_send(a.get(), 1), 0);
  Guarded<ibv_cq*> of;
  Guarded<void*> cq_context;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), of.get(), cq_context.get()), 0);
  EXPECT_EQ(*of, polled.get());
  EXPECT_EQ(*cq_context, this);
  ibv_ack_cq_events(polled.get(), 1);
  Guarded<std::array<ibv_wc, 2>> completions;
  EXPECT_EQ(ibv_poll_cq(polled.get(), 2, completions->data()), 1);

  // A request that is not allowed makes the QP fail, which causes an event.
  const ibv_qp* const failing = b.get();
  ASSERT_NO_FATAL_FAILURE(to_error(b.get()));
  const SrqPtr srq = [&] {
    ibv_srq_init_attr wanted{};
    wanted.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    return SrqPtr(ibv_create_srq(pd.get(), &wanted));
  }();
  const QpPtr with_srq = make_qp({.srq = srq.get()});
  ASSERT_NO_FATAL_FAILURE(bring_up(with_srq.get(), failing->qp_num));
  ASSERT_NO_FATAL_FAILURE(to_error(with_srq.get()));
  Guarded<ibv_async_event> event;
  ASSERT_EQ(ibv_get_async_event(context.get(), event.get()), 0);
  EXPECT_EQ(event->event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event->element.qp, with_srq.get());
  ibv_ack_async_event(event.get());
}

TEST_F(CallerStructs, QueuePairs) {
  Guarded<ibv_qp_init_attr> wanted;
  wanted->qp_type = IBV_QPT_RC;
  wanted->send_cq = wanted->recv_cq = cq.get();
  wanted->cap = {4, 4, 2, 2, 32};
  const QpPtr a(ibv_create_qp(pd.get(), wanted.get()));
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(ibv_qp_to_qp_ex(a.get()), nullptr);
  const QpPtr b = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(a.get(), b.get()));
  Guarded<ibv_qp_attr> attr;
  Guarded<ibv_qp_init_attr> made;
  ASSERT_EQ(ibv_query_qp(a.get(), attr.get(), IBV_QP_STATE | IBV_QP_AV | IBV_QP_CAP, made.get()),
            0);
  EXPECT_EQ(attr->qp_state, IBV_QPS_RTS);
  EXPECT_EQ(made->send_cq, cq.get());
  Guarded<ibv_qp_attr> changed;
  changed->min_rnr_timer = 2;
  EXPECT_EQ(ibv_modify_qp(a.get(), changed.get(), IBV_QP_MIN_RNR_TIMER), 0);

  Guarded<ibv_ece> ece;
  Guarded<ibv_qp_rate_limit_attr> rate;
  for (const int result : {ibv_query_ece(a.get(), ece.get()), ibv_set_ece(b.get(), ece.get()),
                           ibv_modify_qp_rate_limit(a.get(), rate.get())}) {
    EXPECT_TRUE(result == 0 || result == EOPNOTSUPP || result == EINVAL) << result;
  }
  EXPECT_GE(ibv_query_qp_data_in_order(a.get(), IBV_WR_RDMA_WRITE, 0), 0);

  Guarded<std::array<ibv_sge, 2>> from;
  *from = {sge(0, 8), sge(2, 8)};
  Guarded<std::array<ibv_sge, 2>> to;
  *to = {sge(1, 4), sge(3, 12)};
  Guarded<ibv_recv_wr> receive;
  receive->wr_id = 1;
  receive->sg_list = to->data();
  receive->num_sge = 2;
  Guarded<ibv_recv_wr*> bad_receive;
  ASSERT_EQ(ibv_post_recv(b.get(), receive.get(), bad_receive.get()), 0);
  Guarded<ibv_send_wr> send;
  send->wr_id = 2;
  send->sg_list = from->data();
  send->num_sge = 2;
  send->opcode = IBV_WR_SEND_WITH_IMM;
  send->send_flags = IBV_SEND_SIGNALED;
  send->imm_data = htobe32(3);
  Guarded<ibv_send_wr*> bad_send;
  ASSERT_EQ(ibv_post_send(a.get(), send.get(), bad_send.get()), 0);
  std::set<uint64_t> completed;
  while (completed.size() < 2) {
    Guarded<ibv_wc> completion;
    const int count = ibv_poll_cq(cq.get(), 1, completion.get());
    ASSERT_GE(count, 0);
    if (count == 0) continue;
    EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
    completed.insert(completion->wr_id);
  }
}

TEST_F(CallerStructs, Datagrams) {
  const QpPtr a = make_qp({.type = IBV_QPT_UD});
  const QpPtr b = make_qp({.type = IBV_QPT_UD});
  ASSERT_NO_FATAL_FAILURE(bring_up(a.get()));
  ASSERT_NO_FATAL_FAILURE(bring_up(b.get()));
  Guarded<ibv_gid> group;
  const std::array<uint8_t, 16> address{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  std::memcpy(group->raw, address.data(), address.size());
  EXPECT_EQ(ibv_attach_mcast(b.get(), group.get(), 0), 0);
  EXPECT_EQ(ibv_detach_mcast(b.get(), group.get(), 0), 0);

  ASSERT_EQ(post_recv(b.get(), 1), 0);
  const AhPtr ah = make_ah();
  ibv_send_wr send = request(IBV_WR_SEND, 2);
  send.wr.ud = {.ah = ah.get(), .remote_qpn = b->qp_num, .remote_qkey = kQkey};
  ASSERT_EQ(post(a.get(), send), 0);
  for (const ibv_wc& completion : poll_for(cq.get(), 2)) {
    if (completion.wr_id != 1) continue;
    Guarded<ibv_wc> wc;
    *wc = completion;
    Guarded<ibv_grh> grh;
    std::memcpy(grh.get(), slot(1), kGrhSize);
    Guarded<ibv_ah_attr> attr;
    EXPECT_EQ(ibv_init_ah_from_wc(context.get(), 1, wc.get(), grh.get(), attr.get()), 0);
    EXPECT_NE(AhPtr(ibv_create_ah_from_wc(pd.get(), wc.get(), grh.get(), 1)), nullptr);
  }
}

TEST_F(CallerStructs, AreNotWrittenByUnsupportedVerbs) {
  const QpPtr qp = make_qp({});
  Guarded<ibv_flow_attr> flow;
  EXPECT_EQ(ibv_create_flow(qp.get(), flow.get()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  Guarded<ibv_flow_action_esp_attr> action;
  EXPECT_EQ(ibv_create_flow_action_esp(context.get(), action.get()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  Guarded<ibv_counters_init_attr> counters;
  EXPECT_EQ(ibv_create_counters(context.get(), counters.get()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  Guarded<ibv_wq_init_attr> queue;
  queue->pd = pd.get();
  queue->cq = cq.get();
  EXPECT_EQ(ibv_create_wq(context.get(), queue.get()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  Guarded<ibv_rwq_ind_table_init_attr> table;
  EXPECT_EQ(ibv_create_rwq_ind_table(context.get(), table.get()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);

  // Functions of rdma-core 59 and 65. The argument is longer than their structs, and the excess
  // bytes are zero.
  using Zeros = std::array<unsigned char, 256>;
  for (const char* name : {"ibv_alloc_dmah", "ibv_create_comp_cntr"}) {
    auto* create = function<void*(ibv_context*, void*)>(name);
    if (create == nullptr) continue;
    Guarded<Zeros> wanted;
    EXPECT_EQ(create(context.get(), wanted.get()), nullptr) << name;
    EXPECT_EQ(errno, EOPNOTSUPP) << name;
  }
}

// ---- ibv_qp_ex and ibv_cq_ex -------------------------------------------------------------------

/// Members that ibv_qp_ex has only since rdma-core 44 or 45.
template <class Qp>
void wr_atomic_write(Qp* qp, uint32_t rkey, uint64_t address, const void* data) {
  if constexpr (requires { qp->wr_atomic_write; }) qp->wr_atomic_write(qp, rkey, address, data);
}
template <class Qp>
void wr_flush(Qp* qp, uint32_t rkey, uint64_t address, size_t length) {
  constexpr uint8_t kGlobal = 1, kRange = 0;
  if constexpr (requires { qp->wr_flush; })
    qp->wr_flush(qp, rkey, address, length, kGlobal, kRange);
}

class Builder : public CallerStructs {
 protected:
  void SetUp() override {
    CallerStructs::SetUp();
    if (HasFatalFailure()) return;
    Guarded<ibv_cq_init_attr_ex> wanted;
    wanted->cqe = 64;
    wanted->wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    cq_ex = ibv_create_cq_ex(context.get(), wanted.get());
    ASSERT_NE(cq_ex, nullptr);
  }
  void TearDown() override {
    qp.reset();
    peer.reset();
    if (cq_ex != nullptr) {
      EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
    }
    CallerStructs::TearDown();
  }

  QpPtr create(ibv_qp_type type, uint64_t operations) {
    Guarded<ibv_qp_init_attr_ex> wanted;
    wanted->qp_type = type;
    wanted->send_cq = wanted->recv_cq = ibv_cq_ex_to_cq(cq_ex);
    wanted->cap = {8, 8, 2, 2, 64};
    wanted->comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted->pd = pd.get();
    wanted->send_ops_flags = operations;
    return QpPtr(ibv_create_qp_ex(context.get(), wanted.get()));
  }

  uint64_t address(size_t index) { return reinterpret_cast<uint64_t>(slot(index)); }

  /// Posts what `post` builds, and checks that its only completion has `opcode`.
  template <class Post>
  void expect_completed(ibv_wc_opcode opcode, Post post) {
    ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp.get());
    ASSERT_NE(builder, nullptr);
    ibv_wr_start(builder);
    builder->wr_id = 77;
    builder->wr_flags = IBV_SEND_SIGNALED;
    post(builder);
    ASSERT_EQ(ibv_wr_complete(builder), 0);
    expect_completion(77, opcode);
  }

  void expect_completion(uint64_t wr_id, ibv_wc_opcode opcode) {
    Guarded<ibv_poll_cq_attr> attr;
    int found;
    while ((found = ibv_start_poll(cq_ex, attr.get())) == ENOENT) {
    }
    ASSERT_EQ(found, 0);
    EXPECT_EQ(cq_ex->wr_id, wr_id);
    EXPECT_EQ(cq_ex->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq_ex), opcode);
    EXPECT_EQ(ibv_wc_read_vendor_err(cq_ex), 0u);
    ibv_wc_read_byte_len(cq_ex);
    ibv_wc_read_imm_data(cq_ex);
    ibv_wc_read_invalidated_rkey(cq_ex);
    ibv_wc_read_wc_flags(cq_ex);
    ibv_wc_read_src_qp(cq_ex);
    EXPECT_NE(ibv_wc_read_qp_num(cq_ex), 0u);
    EXPECT_EQ(ibv_wc_read_slid(cq_ex), 0u);
    EXPECT_EQ(ibv_wc_read_sl(cq_ex), 0);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq_ex), 0);
    EXPECT_NE(ibv_wc_read_completion_ts(cq_ex), 0u);
    EXPECT_NE(ibv_wc_read_completion_wallclock_ns(cq_ex), 0u);
    EXPECT_EQ(ibv_next_poll(cq_ex), ENOENT);
    ibv_end_poll(cq_ex);
  }

  ibv_cq_ex* cq_ex = nullptr;
  QpPtr qp, peer;
};

TEST_F(Builder, ReliableConnection) {
  constexpr uint64_t kOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                                   IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
  constexpr uint64_t kFlush = 1u << 11, kAtomicWrite = 1u << 12;
  uint64_t newer = 0;
  if constexpr (sizeof(ibv_qp_ex) > offsetof(provider::QpEx, wr_atomic_write))
    newer |= kAtomicWrite;
  if constexpr (sizeof(ibv_qp_ex) > offsetof(provider::QpEx, wr_flush)) newer |= kFlush;
  qp = create(IBV_QPT_RC, kOperations | newer);
  ASSERT_NE(qp, nullptr) << strerror(errno);
  peer = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), peer.get()));
  constexpr int kFlushAccess = 1 << 8;  // the queue pair and the region must allow FLUSH
  Guarded<ibv_qp_attr> granted;
  granted->qp_access_flags = kRemoteAccess | kFlushAccess;
  ASSERT_EQ(ibv_modify_qp(peer.get(), granted.get(), IBV_QP_ACCESS_FLAGS), 0);
  const MrPtr flushed(ibv_reg_mr(pd.get(), memory.data(), memory.size(),
                                 IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | kFlushAccess));
  ASSERT_NE(flushed, nullptr);
  const uint32_t rkey = flushed->rkey;
  const MwPtr window(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2));
  ASSERT_NE(window, nullptr);

  Guarded<std::array<ibv_sge, 2>> list;
  *list = {sge(0, 8), sge(2, 8)};
  Guarded<std::array<char, 8>> data;
  Guarded<std::array<ibv_data_buf, 1>> buffers;
  (*buffers)[0] = {data.get(), data->size()};
  Guarded<ibv_mw_bind_info> bind;
  bind->mr = remote_mr.get();
  bind->addr = address(0);
  bind->length = 64;
  bind->mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post_recv(peer.get(), i), 0);

  ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp.get());
  ASSERT_NE(builder, nullptr);
  ibv_wr_start(builder);
  builder->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(builder);
  ibv_wr_abort(builder);

  expect_completed(IBV_WC_SEND, [&](ibv_qp_ex* with) {
    ibv_wr_send(with);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  expect_completed(IBV_WC_SEND, [&](ibv_qp_ex* with) {
    ibv_wr_send_imm(with, htobe32(1));
    ibv_wr_set_sge_list(with, list->size(), list->data());
  });
  expect_completed(IBV_WC_RDMA_WRITE, [&](ibv_qp_ex* with) {
    ibv_wr_rdma_write(with, rkey, address(1));
    ibv_wr_set_inline_data(with, data.get(), data->size());
  });
  expect_completed(IBV_WC_RDMA_WRITE, [&](ibv_qp_ex* with) {
    ibv_wr_rdma_write_imm(with, rkey, address(1), htobe32(2));
    ibv_wr_set_inline_data_list(with, buffers->size(), buffers->data());
  });
  expect_completed(IBV_WC_RDMA_READ, [&](ibv_qp_ex* with) {
    ibv_wr_rdma_read(with, rkey, address(1));
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  expect_completed(IBV_WC_COMP_SWAP, [&](ibv_qp_ex* with) {
    ibv_wr_atomic_cmp_swp(with, rkey, address(1), 0, 1);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  expect_completed(IBV_WC_FETCH_ADD, [&](ibv_qp_ex* with) {
    ibv_wr_atomic_fetch_add(with, rkey, address(1), 1);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  const uint32_t window_key = ibv_inc_rkey(window->rkey);
  expect_completed(IBV_WC_BIND_MW, [&](ibv_qp_ex* with) {
    ibv_wr_bind_mw(with, window.get(), window_key, bind.get());
  });
  expect_completed(IBV_WC_LOCAL_INV, [&](ibv_qp_ex* with) { ibv_wr_local_inv(with, window_key); });
  const MwPtr peers_window(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2));
  ASSERT_NE(peers_window, nullptr);
  ibv_send_wr bind_peers{};
  bind_peers.opcode = IBV_WR_BIND_MW;
  bind_peers.bind_mw.mw = peers_window.get();
  bind_peers.bind_mw.rkey = ibv_inc_rkey(peers_window->rkey);
  bind_peers.bind_mw.bind_info = *bind;
  ASSERT_EQ(post(peer.get(), bind_peers), 0);
  expect_completed(IBV_WC_SEND, [&](ibv_qp_ex* with) {
    ibv_wr_send_inv(with, bind_peers.bind_mw.rkey);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  constexpr auto kAtomicWriteDone = static_cast<ibv_wc_opcode>(9);
  constexpr auto kFlushDone = static_cast<ibv_wc_opcode>(8);
  if ((newer & kAtomicWrite) != 0)
    expect_completed(kAtomicWriteDone,
                     [&](ibv_qp_ex* with) { wr_atomic_write(with, rkey, address(1), data.get()); });
  if ((newer & kFlush) != 0)
    expect_completed(kFlushDone, [&](ibv_qp_ex* with) { wr_flush(with, rkey, address(1), 8); });
  EXPECT_EQ(poll_for(cq.get(), 4).size(), 4u);  // the peer's receives

  // TSO is only for raw packet QPs, which do not exist here.
  EXPECT_EQ(create(IBV_QPT_RC, IBV_QP_EX_WITH_TSO), nullptr);
}

TEST_F(Builder, Datagrams) {
  qp = create(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
  ASSERT_NE(qp, nullptr);
  peer = make_qp({.type = IBV_QPT_UD});
  ASSERT_NO_FATAL_FAILURE(bring_up(qp.get()));
  ASSERT_NO_FATAL_FAILURE(bring_up(peer.get()));
  ASSERT_EQ(post_recv(peer.get(), 1), 0);
  const AhPtr ah = make_ah();
  expect_completed(IBV_WC_SEND, [&](ibv_qp_ex* with) {
    ibv_wr_send(with);
    ibv_wr_set_ud_addr(with, ah.get(), peer->qp_num, kQkey);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  EXPECT_EQ(poll_for(cq.get(), 1).size(), 1u);
}

TEST_F(Builder, ExtendedReliableConnection) {
  ibv_xrcd_init_attr domain{};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  domain.oflags = O_CREAT;
  const XrcdPtr xrcd(ibv_open_xrcd(context.get(), &domain));
  ASSERT_NE(xrcd, nullptr);
  ibv_srq_init_attr_ex wanted{};
  wanted.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  wanted.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  wanted.srq_type = IBV_SRQT_XRC;
  wanted.xrcd = xrcd.get();
  wanted.cq = cq.get();
  wanted.pd = pd.get();
  const SrqPtr srq(ibv_create_srq_ex(context.get(), &wanted));
  ASSERT_NE(srq, nullptr);
  uint32_t number = 0;
  ASSERT_EQ(ibv_get_srq_num(srq.get(), &number), 0);
  ASSERT_EQ(post_srq(srq.get(), 1), 0);
  qp = create(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND);
  ASSERT_NE(qp, nullptr);
  const QpPtr target = make_qp({.type = IBV_QPT_XRC_RECV, .xrcd = xrcd.get()});
  ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), target.get()));
  expect_completed(IBV_WC_SEND, [&](ibv_qp_ex* with) {
    ibv_wr_send(with);
    ibv_wr_set_xrc_srqn(with, number);
    ibv_wr_set_sge(with, mr->lkey, address(0), 8);
  });
  EXPECT_EQ(poll_for(cq.get(), 1).size(), 1u);
  qp.reset();
}

}  // namespace
}  // namespace rocemu::layouts
