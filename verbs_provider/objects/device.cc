// ibv_query_device(3), ibv_query_device_ex(3), ibv_query_rt_values_ex(3) and ibv_query_port(3).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <endian.h>

#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/device_clock.h"

namespace rocemu::provider {
namespace {

/// Bit 0 of ibv_port_attr::flags means that a path needs a GRH, which is always true for RoCE.
constexpr uint8_t kPortNeedsGrh = 1;

/// The size of ibv_port_attr in versions up to rdma-core 48.
constexpr size_t kFirstPortAttrSize = 52;
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == kFirstPortAttrSize - 4);

int to_int(uint32_t value) {
  return static_cast<int>(value);
}

void convert(const abi::DeviceAttr& from, ibv_device_attr* to) {
  static_assert(sizeof(to->fw_ver) >= sizeof(from.fw_ver));
  memcpy(to->fw_ver, from.fw_ver, sizeof(from.fw_ver));
  to->fw_ver[sizeof(from.fw_ver) - 1] = '\0';
  to->node_guid = htobe64(from.node_guid);
  to->sys_image_guid = htobe64(from.sys_image_guid);
  to->max_mr_size = from.max_mr_size;
  to->page_size_cap = from.page_size_cap;
  to->vendor_id = from.vendor_id;
  to->vendor_part_id = from.vendor_part_id;
  to->hw_ver = from.hw_ver;
  to->max_qp = to_int(from.max_qp);
  to->max_qp_wr = to_int(from.max_qp_wr);
  to->device_cap_flags = from.device_cap_flags;
  to->max_sge = to_int(from.max_sge);
  to->max_sge_rd = to_int(from.max_sge_rd);
  to->max_cq = to_int(from.max_cq);
  to->max_cqe = to_int(from.max_cqe);
  to->max_mr = to_int(from.max_mr);
  to->max_pd = to_int(from.max_pd);
  to->max_qp_rd_atom = to_int(from.max_qp_rd_atom);
  to->max_res_rd_atom = to_int(from.max_res_rd_atom);
  to->max_qp_init_rd_atom = to_int(from.max_qp_init_rd_atom);
  to->atomic_cap = static_cast<ibv_atomic_cap>(from.atomic_cap);
  to->max_mw = to_int(from.max_mw);
  to->max_mcast_grp = to_int(from.max_mcast_grp);
  to->max_mcast_qp_attach = to_int(from.max_mcast_qp_attach);
  to->max_total_mcast_qp_attach = to_int(from.max_total_mcast_qp_attach);
  to->max_ah = to_int(from.max_ah);
  to->max_srq = to_int(from.max_srq);
  to->max_srq_wr = to_int(from.max_srq_wr);
  to->max_srq_sge = to_int(from.max_srq_sge);
  to->max_pkeys = from.max_pkeys;
  to->local_ca_ack_delay = from.local_ca_ack_delay;
  to->phys_port_cnt = from.phys_port_cnt;
}

uint16_t to_uint16(uint32_t value) {
  return static_cast<uint16_t>(std::min<uint32_t>(value, UINT16_MAX));
}

/// Converts the attributes. The fields that are not set stay zero, as on a device without these
/// features: segmentation offload, RSS, packet pacing, raw packets, tag matching, atomics over PCI.
void convert(const abi::DeviceAttr& from, ibv_device_attr_ex* to) {
  convert(from, &to->orig_attr);
  to->device_cap_flags_ex = from.device_cap_flags_ex;
  to->phys_port_cnt_ex = from.phys_port_cnt;
  to->odp_caps.general_caps = from.odp_general_caps;
  to->odp_caps.per_transport_caps.rc_odp_caps = from.odp_caps[0];
  to->odp_caps.per_transport_caps.uc_odp_caps = from.odp_caps[1];
  to->odp_caps.per_transport_caps.ud_odp_caps = from.odp_caps[2];
  to->xrc_odp_caps = from.odp_caps[3];
  to->completion_timestamp_mask = from.timestamp_mask;
  to->hca_core_clock = from.hca_core_clock;
  to->max_dm_size = from.max_dm_size;
  to->cq_mod_caps.max_cq_count = to_uint16(from.max_cq_moderation_count);
  to->cq_mod_caps.max_cq_period = to_uint16(from.max_cq_moderation_period);
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, size_t attr_size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (attr_size < sizeof(attr->orig_attr)) return EINVAL;
  abi::Request request{};
  request.op = abi::Op::kQueryDevice;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) return error;

  // The size of the caller's struct depends on its header: ibv_query_device passes only the first
  // part.
  ibv_device_attr_ex all{};
  convert(reply.body.device, &all);
  const size_t known = std::min(attr_size, sizeof(all));
  memcpy(static_cast<void*>(attr), &all, known);
  memset(reinterpret_cast<char*>(attr) + known, 0, attr_size - known);
  return 0;
}

int query_rt_values(ibv_context* context, ibv_values_ex* values) {
  if (const int error = ask(context, abi::Op::kQueryRtValues); error != 0) return error;
  // Only the raw clock can be queried. ibv_query_rt_values_ex(3): "has to query this value somehow
  // and mark the queried values in the comp_mask field"
  values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
  if (values->comp_mask != 0) {
    // As on other devices, the value is a number of ticks in tv_nsec, and tv_sec is not used. With
    // ticks of 1 ns, it is also the time in nanoseconds.
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = static_cast<long>(device_time_ns(context));
  }
  return 0;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr) {
  abi::Request request{};
  request.op = abi::Op::kQueryPort;
  request.body.query_port.port = port;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) return error;

  const abi::PortAttr& from = reply.body.port;
  // The fields that rdma-core 49 appended are not written: the struct may belong to an older
  // libibverbs. Newer ones have set them to zero, and 0 in active_speed_ex means "refer to
  // active_speed instead" (ibv_query_port(3)).
  memset(static_cast<void*>(attr), 0, kFirstPortAttrSize);
  attr->state = static_cast<ibv_port_state>(from.state);
  attr->max_mtu = static_cast<ibv_mtu>(from.max_mtu);
  attr->active_mtu = static_cast<ibv_mtu>(from.active_mtu);
  attr->gid_tbl_len = to_int(from.gid_tbl_len);
  attr->port_cap_flags = from.port_cap_flags;
  attr->max_msg_sz = from.max_msg_sz;
  attr->bad_pkey_cntr = from.bad_pkey_cntr;
  attr->qkey_viol_cntr = from.qkey_viol_cntr;
  attr->pkey_tbl_len = from.pkey_tbl_len;
  attr->max_vl_num = from.max_vl_num;
  attr->lid = from.lid;
  attr->sm_lid = from.sm_lid;
  attr->lmc = from.lmc;
  attr->active_width = from.active_width;
  attr->active_speed = from.active_speed;
  attr->phys_state = from.phys_state;
  attr->link_layer = from.link_layer;
  attr->flags = kPortNeedsGrh;
  return 0;
}

}  // namespace rocemu::provider
