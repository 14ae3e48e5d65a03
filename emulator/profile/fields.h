// The list of all keys of a profile: for each key its section, its name, its valid values, and the
// member of DeviceProfile for it. Reading, writing, comparing and the schema are visitors of this
// list.
//
// A visitor has number(section, key, member), text(...), name(..., names), bits(..., names),
// names(..., names) for a list whose order matters, error(..., word for 0) and verbs(section, map).
#pragma once

#include "emulator/engine/device_profile.h"
#include "emulator/profile/field_names.h"

namespace rocemu::profile {

/// Calls the visitor for each key. `Profile` is DeviceProfile or const DeviceProfile.
template <class Profile, class Visitor>
void visit_fields(Profile& p, Visitor& v) {
  v.text("", "summary", p.summary);

  v.text("identity", "name", p.identity.name);
  v.name("identity", "node_type", p.identity.node_type, kNodeTypes);
  v.text("identity", "node_desc", p.identity.node_desc);
  v.text("identity", "hca_type", p.identity.hca_type);
  v.text("identity", "board_id", p.identity.board_id);
  v.text("identity", "hw_rev", p.identity.hw_rev);
  v.text("identity", "driver", p.identity.driver);
  v.text("identity", "module", p.identity.module);

  v.number("pci", "vendor", p.pci.vendor);
  v.number("pci", "device", p.pci.device);
  v.number("pci", "subsystem_vendor", p.pci.subsystem_vendor);
  v.number("pci", "subsystem_device", p.pci.subsystem_device);
  v.number("pci", "class", p.pci.class_code);
  v.number("pci", "revision", p.pci.revision);

  auto& attr = p.attr;
  v.text("device", "fw_ver", attr.fw_ver);
  v.number("device", "vendor_id", attr.vendor_id);
  v.number("device", "vendor_part_id", attr.vendor_part_id);
  v.number("device", "hw_ver", attr.hw_ver);
  v.number("device", "phys_port_cnt", attr.phys_port_cnt);
  v.number("device", "max_mr_size", attr.max_mr_size);
  v.number("device", "page_size_cap", attr.page_size_cap);
  v.number("device", "max_qp", attr.max_qp);
  v.number("device", "max_qp_wr", attr.max_qp_wr);
  v.bits("device", "device_cap_flags", attr.device_cap_flags, kCapFlags);
  v.number("device", "device_cap_flags_ex", attr.device_cap_flags_ex);
  v.number("device", "max_sge", attr.max_sge);
  v.number("device", "max_sge_rd", attr.max_sge_rd);
  v.number("device", "max_cq", attr.max_cq);
  v.number("device", "max_cqe", attr.max_cqe);
  v.number("device", "max_mr", attr.max_mr);
  v.number("device", "max_pd", attr.max_pd);
  v.number("device", "max_qp_rd_atom", attr.max_qp_rd_atom);
  v.number("device", "max_res_rd_atom", attr.max_res_rd_atom);
  v.number("device", "max_qp_init_rd_atom", attr.max_qp_init_rd_atom);
  v.name("device", "atomic_cap", attr.atomic_cap, kAtomicCaps);
  v.number("device", "max_mw", attr.max_mw);
  v.number("device", "max_mcast_grp", attr.max_mcast_grp);
  v.number("device", "max_mcast_qp_attach", attr.max_mcast_qp_attach);
  v.number("device", "max_total_mcast_qp_attach", attr.max_total_mcast_qp_attach);
  v.number("device", "max_ah", attr.max_ah);
  v.number("device", "max_srq", attr.max_srq);
  v.number("device", "max_srq_wr", attr.max_srq_wr);
  v.number("device", "max_srq_sge", attr.max_srq_sge);
  v.number("device", "max_pkeys", attr.max_pkeys);
  v.number("device", "local_ca_ack_delay", attr.local_ca_ack_delay);
  v.bits("device", "general_odp_caps", attr.odp_general_caps, kOdpGeneral);
  v.bits("device", "rc_odp_caps", attr.odp_caps[0], kOdpTransport);
  v.bits("device", "uc_odp_caps", attr.odp_caps[1], kOdpTransport);
  v.bits("device", "ud_odp_caps", attr.odp_caps[2], kOdpTransport);
  v.bits("device", "xrc_odp_caps", attr.odp_caps[3], kOdpTransport);
  v.number("device", "completion_timestamp_mask", attr.timestamp_mask);
  v.number("device", "hca_core_clock", attr.hca_core_clock);
  v.number("device", "max_cq_count", attr.max_cq_moderation_count);
  v.number("device", "max_cq_period", attr.max_cq_moderation_period);
  v.number("device", "max_dm_size", attr.max_dm_size);

  auto& port = p.port;
  v.name("port", "max_mtu", port.max_mtu, kMtus);
  v.name("port", "active_mtu", p.active_mtu, kMtus);
  v.number("port", "gid_tbl_len", port.gid_tbl_len);
  v.number("port", "pkey_tbl_len", port.pkey_tbl_len);
  v.number("port", "max_msg_sz", port.max_msg_sz);
  v.number("port", "port_cap_flags", port.port_cap_flags);
  v.number("port", "max_vl_num", port.max_vl_num);
  v.number("port", "port_lid", port.lid);
  v.number("port", "sm_lid", port.sm_lid);
  v.number("port", "port_lmc", port.lmc);
  v.name("port", "link_layer", port.link_layer, kLinkLayers);
  v.name("port", "active_width", port.active_width, kWidths);
  v.name("port", "active_speed", port.active_speed, kSpeeds);

  v.names("gids", "types", p.gid_types, kGidTypes);
  v.name("gids", "link_local_first", p.link_local_first, kBooleans);

  v.bits("qp", "types", p.qp.types, kQpTypes);
  v.error("qp", "type_error", p.qp.type_error, "untouched");
  v.error("qp", "limit_error", p.qp.limit_error, "untouched");
  v.error("qp", "exhausted_error", p.qp.exhausted_error, "ENOMEM");
  v.number("qp", "max_send_wr", p.qp.max_send_wr);
  v.number("qp", "max_recv_wr", p.qp.max_recv_wr);
  v.number("qp", "max_send_sge", p.qp.max_send_sge);
  v.number("qp", "max_recv_sge", p.qp.max_recv_sge);
  v.number("qp", "min_send_wr", p.qp.min_send_wr);
  v.number("qp", "min_recv_wr", p.qp.min_recv_wr);
  v.number("qp", "max_inline_data", attr.max_inline_data);
  v.name("qp", "inline_above", p.qp.inline_above, kInlineAbove);
  v.number("qp", "least_inline", p.qp.least_inline);
  v.name("qp", "inline_room", p.posts.no_inline_room, kInlineRoom);

  v.bits("post", "opcodes", p.sends.opcodes, kOpcodes);
  v.error("post", "opcode_error", p.posts.opcode_error, "EINVAL");
  v.error("post", "inline_error", p.posts.inline_error, "EINVAL");
  v.number("post", "max_read_sge", p.posts.max_read_sge);
  v.number("post", "most_posted", p.posts.most_posted);
  v.bits("post", "late_failures", p.sends.late_failures, kOpcodes);
  v.number("post", "late_vendor_err", p.sends.late_vendor_err);

  v.bits("mr", "access", p.mr_access, kAccess);
  v.error("mr", "access_error", p.mr_access_error, "EOPNOTSUPP");
  v.name("mr", "equal_keys", p.equal_keys, kBooleans);

  v.verbs("verbs", p.refused);
}

}  // namespace rocemu::profile
