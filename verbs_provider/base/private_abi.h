// The binary interface between libibverbs and its providers, for which rdma-core does not install a
// header. It is declared here in our own words, and nowhere else; the sizes are asserted below.
//
// The provider is compiled once and works with every libibverbs of rdma-core 36 to 65, whichever
// headers it is compiled with. layout.h has the differences between these versions; the interface
// is declared here in its largest form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include <infiniband/verbs.h>
#include <sys/types.h>

static_assert(sizeof(void*) == 8, "private_abi.h describes 64-bit machines");

namespace rocemu::provider {

/// A member of a doubly linked list inside libibverbs.
struct ListNode {
  ListNode* next;
  ListNode* prev;
};

struct DeviceOps;

/// A row of the table by which a provider can describe its devices. This provider has no such
/// table, and recognizes its devices by match_device().
struct MatchEntry {
  void* driver_data;
  union {
    const char* modalias;
    uint64_t driver_id;
  };
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;
};

/// A device that libibverbs found in sysfs, before it asks the providers.
struct SysfsDevice {
  ListNode entry;
  void* provider_data;
  const MatchEntry* match;
  unsigned flags;
  char sysfs_name[64];  // "uverbs0"
  dev_t sysfs_cdev;
  char ibdev_name[64];
  char ibdev_path[256];
  char modalias[512];
  uint64_t node_guid;
  uint32_t driver_id;
  ibv_node_type node_type;
  int ibdev_index;
  uint32_t num_ports;
  uint32_t abi_version;
  timespec time_created;
};

struct VerbsDevice {
  ibv_device device;
  const DeviceOps* ops;
  int refcount;
  ListNode entry;
  SysfsDevice* sysfs;
  uint64_t core_support;
};

/// The operations that a provider registers.
struct DeviceOps {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const MatchEntry* match_table;
  const DeviceOps** static_providers;
  bool (*match_device)(SysfsDevice*);
  verbs_context* (*alloc_context)(ibv_device*, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device*, int cmd_fd);
  VerbsDevice* (*alloc_device)(SysfsDevice*);
  void (*uninit_device)(VerbsDevice*);
};

enum class MrType : uint32_t { kMr, kNullMr, kImportedMr, kDmabufMr };

struct VerbsMr {
  ibv_mr mr;
  MrType type;
  int access;
};

/// ibv_qp_ex with all its operations. Older headers lack the last ones, but libibverbs places its
/// members behind ibv_qp_ex according to its own header.
struct QpEx {
  ibv_qp qp_base;
  uint64_t comp_mask;
  uint64_t wr_id;
  unsigned wr_flags;
  void (*wr_atomic_cmp_swp)(ibv_qp_ex*, uint32_t rkey, uint64_t address, uint64_t compare,
                            uint64_t swap);
  void (*wr_atomic_fetch_add)(ibv_qp_ex*, uint32_t rkey, uint64_t address, uint64_t add);
  void (*wr_bind_mw)(ibv_qp_ex*, ibv_mw*, uint32_t rkey, const ibv_mw_bind_info*);
  void (*wr_local_inv)(ibv_qp_ex*, uint32_t rkey);
  void (*wr_rdma_read)(ibv_qp_ex*, uint32_t rkey, uint64_t address);
  void (*wr_rdma_write)(ibv_qp_ex*, uint32_t rkey, uint64_t address);
  void (*wr_rdma_write_imm)(ibv_qp_ex*, uint32_t rkey, uint64_t address, __be32 imm_data);
  void (*wr_send)(ibv_qp_ex*);
  void (*wr_send_imm)(ibv_qp_ex*, __be32 imm_data);
  void (*wr_send_inv)(ibv_qp_ex*, uint32_t rkey);
  void (*wr_send_tso)(ibv_qp_ex*, void* header, uint16_t header_size, uint16_t mss);
  void (*wr_set_ud_addr)(ibv_qp_ex*, ibv_ah*, uint32_t remote_qpn, uint32_t remote_qkey);
  void (*wr_set_xrc_srqn)(ibv_qp_ex*, uint32_t remote_srqn);
  void (*wr_set_inline_data)(ibv_qp_ex*, void* address, size_t length);
  void (*wr_set_inline_data_list)(ibv_qp_ex*, size_t count, const ibv_data_buf*);
  void (*wr_set_sge)(ibv_qp_ex*, uint32_t lkey, uint64_t address, uint32_t length);
  void (*wr_set_sge_list)(ibv_qp_ex*, size_t count, const ibv_sge*);
  void (*wr_start)(ibv_qp_ex*);
  int (*wr_complete)(ibv_qp_ex*);
  void (*wr_abort)(ibv_qp_ex*);
  void (*wr_atomic_write)(ibv_qp_ex*, uint32_t rkey, uint64_t address, const void* data);  // 44
  void (*wr_flush)(ibv_qp_ex*, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
                   uint8_t level);  // 45
};

/// libibverbs' members after ibv_qp_ex: a mask by which ibv_qp_to_qp_ex() knows whether the
/// functions of ibv_qp_ex exist (layout.h has its position), and an XRC domain that only
/// libibverbs' own commands use.
struct VerbsQp {
  union {
    ibv_qp qp;
    QpEx qp_ex;
  };
  uint64_t behind_qp_ex[2];
};

struct VerbsCq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

/// The operations of a context in alphabetical order, including those that this provider does not
/// implement (verbs.h). Each row has the version of libibverbs' public symbols that introduced the
/// operation (the N of IBVERBS_1.N), its type and its name. This provider implements no operation
/// that is newer than IBVERBS_1.14, and omits the types of newer operations.
// clang-format off
#define ROCEMU_CONTEXT_OPS(V) \
  V(14, int, advise_mr, (ibv_pd*, ibv_advise_mr_advice, uint32_t flags, ibv_sge*, uint32_t num_sge)) \
  V(17, void, alloc_buf, ()) \
  V(14, ibv_dm*, alloc_dm, (ibv_context*, ibv_alloc_dm_attr*)) \
  V(15, void, alloc_dmah, ()) \
  V(14, ibv_mw*, alloc_mw, (ibv_pd*, ibv_mw_type)) \
  V(14, ibv_mr*, alloc_null_mr, (ibv_pd*)) \
  V(14, ibv_pd*, alloc_parent_domain, (ibv_context*, ibv_parent_domain_init_attr*)) \
  V(14, ibv_pd*, alloc_pd, (ibv_context*)) \
  V(14, ibv_td*, alloc_td, (ibv_context*, ibv_td_init_attr*)) \
  V(14, void, async_event, (ibv_context*, ibv_async_event*)) \
  V(14, int, attach_counters_point_flow, (ibv_counters*, ibv_counter_attach_attr*, ibv_flow*)) \
  V(14, int, attach_mcast, (ibv_qp*, const ibv_gid*, uint16_t lid)) \
  V(14, int, bind_mw, (ibv_qp*, ibv_mw*, ibv_mw_bind*)) \
  V(14, int, close_xrcd, (ibv_xrcd*)) \
  V(14, void, cq_event, (ibv_cq*)) \
  V(14, ibv_ah*, create_ah, (ibv_pd*, ibv_ah_attr*)) \
  V(18, void, create_comp_cntr, ()) \
  V(14, ibv_counters*, create_counters, (ibv_context*, ibv_counters_init_attr*)) \
  V(14, ibv_cq*, create_cq, (ibv_context*, int capacity, ibv_comp_channel*, int comp_vector)) \
  V(14, ibv_cq_ex*, create_cq_ex, (ibv_context*, ibv_cq_init_attr_ex*)) \
  V(14, ibv_flow*, create_flow, (ibv_qp*, ibv_flow_attr*)) \
  V(14, ibv_flow_action*, create_flow_action_esp, (ibv_context*, ibv_flow_action_esp_attr*)) \
  V(14, ibv_qp*, create_qp, (ibv_pd*, ibv_qp_init_attr*)) \
  V(14, ibv_qp*, create_qp_ex, (ibv_context*, ibv_qp_init_attr_ex*)) \
  V(14, ibv_rwq_ind_table*, create_rwq_ind_table, (ibv_context*, ibv_rwq_ind_table_init_attr*)) \
  V(14, ibv_srq*, create_srq, (ibv_pd*, ibv_srq_init_attr*)) \
  V(14, ibv_srq*, create_srq_ex, (ibv_context*, ibv_srq_init_attr_ex*)) \
  V(14, ibv_wq*, create_wq, (ibv_context*, ibv_wq_init_attr*)) \
  V(15, void, dealloc_dmah, ()) \
  V(14, int, dealloc_mw, (ibv_mw*)) \
  V(14, int, dealloc_pd, (ibv_pd*)) \
  V(14, int, dealloc_td, (ibv_td*)) \
  V(14, int, dereg_mr, (VerbsMr*)) \
  V(14, int, destroy_ah, (ibv_ah*)) \
  V(18, void, destroy_comp_cntr, ()) \
  V(14, int, destroy_counters, (ibv_counters*)) \
  V(14, int, destroy_cq, (ibv_cq*)) \
  V(14, int, destroy_flow, (ibv_flow*)) \
  V(14, int, destroy_flow_action, (ibv_flow_action*)) \
  V(14, int, destroy_qp, (ibv_qp*)) \
  V(14, int, destroy_rwq_ind_table, (ibv_rwq_ind_table*)) \
  V(14, int, destroy_srq, (ibv_srq*)) \
  V(14, int, destroy_wq, (ibv_wq*)) \
  V(14, int, detach_mcast, (ibv_qp*, const ibv_gid*, uint16_t lid)) \
  V(16, void, dm_export_dmabuf_fd, ()) \
  V(17, void, free_buf, ()) \
  V(14, void, free_context, (ibv_context*)) \
  V(14, int, free_dm, (ibv_dm*)) \
  V(14, int, get_srq_num, (ibv_srq*, uint32_t* number)) \
  V(14, ibv_dm*, import_dm, (ibv_context*, uint32_t handle)) \
  V(14, ibv_mr*, import_mr, (ibv_pd*, uint32_t handle)) \
  V(14, ibv_pd*, import_pd, (ibv_context*, uint32_t handle)) \
  V(18, void, inc_comp_cntr, ()) \
  V(18, void, inc_err_comp_cntr, ()) \
  V(14, int, modify_cq, (ibv_cq*, ibv_modify_cq_attr*)) \
  V(14, int, modify_flow_action_esp, (ibv_flow_action*, ibv_flow_action_esp_attr*)) \
  V(14, int, modify_qp, (ibv_qp*, ibv_qp_attr*, int mask)) \
  V(14, int, modify_qp_rate_limit, (ibv_qp*, ibv_qp_rate_limit_attr*)) \
  V(14, int, modify_srq, (ibv_srq*, ibv_srq_attr*, int mask)) \
  V(14, int, modify_wq, (ibv_wq*, ibv_wq_attr*)) \
  V(14, ibv_qp*, open_qp, (ibv_context*, ibv_qp_open_attr*)) \
  V(14, ibv_xrcd*, open_xrcd, (ibv_context*, ibv_xrcd_init_attr*)) \
  V(14, int, poll_cq, (ibv_cq*, int num_entries, ibv_wc*)) \
  V(14, int, post_recv, (ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad_wr)) \
  V(14, int, post_send, (ibv_qp*, ibv_send_wr*, ibv_send_wr** bad_wr)) \
  V(14, int, post_srq_ops, (ibv_srq*, ibv_ops_wr*, ibv_ops_wr** bad_op)) \
  V(14, int, post_srq_recv, (ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad_wr)) \
  V(18, void, qp_attach_comp_cntr, ()) \
  V(18, void, query_comp_cntr_caps, ()) \
  V(14, int, query_device_ex, (ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, size_t attr_size)) \
  V(14, int, query_ece, (ibv_qp*, ibv_ece*)) \
  V(14, int, query_port, (ibv_context*, uint8_t port, ibv_port_attr*)) \
  V(16, void, query_port_speed, ()) \
  V(14, int, query_qp, (ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*)) \
  V(14, int, query_qp_data_in_order, (ibv_qp*, ibv_wr_opcode, uint32_t flags)) \
  V(14, int, query_rt_values, (ibv_context*, ibv_values_ex*)) \
  V(14, int, query_srq, (ibv_srq*, ibv_srq_attr*)) \
  V(18, void, read_comp_cntr, ()) \
  V(14, int, read_counters, (ibv_counters*, uint64_t* values, uint32_t count, uint32_t flags)) \
  V(18, void, read_err_comp_cntr, ()) \
  V(14, ibv_mr*, reg_dm_mr, (ibv_pd*, ibv_dm*, uint64_t offset, size_t length, unsigned access)) \
  V(14, ibv_mr*, reg_dmabuf_mr, (ibv_pd*, uint64_t offset, size_t length, uint64_t iova, int fd, int access)) \
  V(14, ibv_mr*, reg_mr, (ibv_pd*, void* address, size_t length, uint64_t iova, int access)) \
  V(15, void, reg_mr_ex, ()) \
  V(14, int, req_notify_cq, (ibv_cq*, int solicited_only)) \
  V(14, int, rereg_mr, (VerbsMr*, int flags, ibv_pd*, void* address, size_t length, int access)) \
  V(14, int, resize_cq, (ibv_cq*, int capacity)) \
  V(18, void, set_comp_cntr, ()) \
  V(14, int, set_ece, (ibv_qp*, ibv_ece*)) \
  V(18, void, set_err_comp_cntr, ()) \
  V(14, void, unimport_dm, (ibv_dm*)) \
  V(14, void, unimport_mr, (ibv_mr*)) \
  V(14, void, unimport_pd, (ibv_pd*))
// clang-format on

/// All operations of a context. For a null operation, libibverbs returns EOPNOTSUPP.
struct ContextOps {
#define ROCEMU_CONTEXT_OP(since, result, name, arguments) result(*name) arguments;
  ROCEMU_CONTEXT_OPS(ROCEMU_CONTEXT_OP)
#undef ROCEMU_CONTEXT_OP
};

static_assert(sizeof(DeviceOps) == 72);
static_assert(sizeof(VerbsDevice) == 712);
static_assert(sizeof(MatchEntry) == 24);
static_assert(sizeof(SysfsDevice) == 992);
static_assert(sizeof(VerbsMr) == 56);
static_assert(offsetof(QpEx, wr_flags) == offsetof(ibv_qp_ex, wr_flags));
static_assert(offsetof(QpEx, wr_set_sge_list) == offsetof(ibv_qp_ex, wr_set_sge_list));
static_assert(offsetof(QpEx, wr_abort) == offsetof(ibv_qp_ex, wr_abort));
static_assert(sizeof(QpEx) == sizeof(ibv_qp) + 200);
static_assert(sizeof(ContextOps) == 744);

}  // namespace rocemu::provider

// Functions that libibverbs exports for providers only. verbs_register_driver_N is in
// registration.cc.
extern "C" {
/// Allocates `size` zeroed bytes, which contain a verbs_context at offset `context_offset` (passed
/// as a pointer), and initializes that verbs_context. From then on the context owns cmd_fd.
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, size_t size,
                                    verbs_context* context_offset, uint32_t driver_id);

/// Closes cmd_fd and async_fd and releases libibverbs' resources, but not the memory.
void verbs_uninit_context(verbs_context* context);

/// Takes over the operations that are not null. `ops` has the operations that this libibverbs
/// knows.
void verbs_set_ops(verbs_context* context, const rocemu::provider::ContextOps* ops);
}
