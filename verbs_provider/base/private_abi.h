// The binary interface between libibverbs and its providers, which rdma-core does not install a
// header for. Declared here in our own words, and nowhere else; the sizes are asserted below.
//
// The number in the provider's file name, ROCEMU_PRIVATE_ABI, stands for the layout of
// ContextOps, to which rdma-core adds operations: 34 and 57 have the one below. See
// private_abi.cmake for the later ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include <infiniband/verbs.h>
#include <sys/types.h>

#if ROCEMU_PRIVATE_ABI != 34
#error "verbs_provider/base/private_abi.h does not describe this private ABI"
#endif
#ifndef __x86_64__
#error "verbs_provider/base/private_abi.h describes x86-64"
#endif

namespace rocemu::provider {

/// A member of a doubly linked list of libibverbs' own.
struct ListNode {
  ListNode* next;
  ListNode* prev;
};

struct DeviceOps;

/// How a device can be recognised; ours is by match_device().
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

/// What libibverbs found in sysfs before it asks providers.
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

/// What a provider registers.
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

struct VerbsQp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  uint32_t comp_mask;
  void* xrcd;
};

struct VerbsCq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

/// One context's operations, by name in alphabetical order, whether we provide them (verbs.h) or
/// not. Null ones are left to libibverbs, which answers EOPNOTSUPP.
struct ContextOps {
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, uint32_t flags, ibv_sge*, uint32_t num_sge);
  ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  ibv_mr* (*alloc_null_mr)(ibv_pd*);
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
  void (*async_event)(ibv_context*, ibv_async_event*);
  int (*attach_counters_point_flow)(ibv_counters*, ibv_counter_attach_attr*, ibv_flow*);
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, uint16_t lid);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  int (*close_xrcd)(ibv_xrcd*);
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  ibv_counters* (*create_counters)(ibv_context*, ibv_counters_init_attr*);
  ibv_cq* (*create_cq)(ibv_context*, int capacity, ibv_comp_channel*, int comp_vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  ibv_flow* (*create_flow)(ibv_qp*, ibv_flow_attr*);
  ibv_flow_action* (*create_flow_action_esp)(ibv_context*, ibv_flow_action_esp_attr*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context*, ibv_rwq_ind_table_init_attr*);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
  ibv_wq* (*create_wq)(ibv_context*, ibv_wq_init_attr*);
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  int (*dealloc_td)(ibv_td*);
  int (*dereg_mr)(VerbsMr*);
  int (*destroy_ah)(ibv_ah*);
  int (*destroy_counters)(ibv_counters*);
  int (*destroy_cq)(ibv_cq*);
  int (*destroy_flow)(ibv_flow*);
  int (*destroy_flow_action)(ibv_flow_action*);
  int (*destroy_qp)(ibv_qp*);
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
  int (*destroy_srq)(ibv_srq*);
  int (*destroy_wq)(ibv_wq*);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, uint16_t lid);
  void (*free_context)(ibv_context*);
  int (*free_dm)(ibv_dm*);
  int (*get_srq_num)(ibv_srq*, uint32_t* number);
  ibv_dm* (*import_dm)(ibv_context*, uint32_t handle);
  ibv_mr* (*import_mr)(ibv_pd*, uint32_t handle);
  ibv_pd* (*import_pd)(ibv_context*, uint32_t handle);
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  int (*modify_flow_action_esp)(ibv_flow_action*, ibv_flow_action_esp_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  int (*modify_qp_rate_limit)(ibv_qp*, ibv_qp_rate_limit_attr*);
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  int (*modify_wq)(ibv_wq*, ibv_wq_attr*);
  ibv_qp* (*open_qp)(ibv_context*, ibv_qp_open_attr*);
  ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
  int (*poll_cq)(ibv_cq*, int num_entries, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad_wr);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad_wr);
  int (*post_srq_ops)(ibv_srq*, ibv_ops_wr*, ibv_ops_wr** bad_op);
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad_wr);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         size_t attr_size);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  int (*query_qp_data_in_order)(ibv_qp*, ibv_wr_opcode, uint32_t flags);
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  int (*read_counters)(ibv_counters*, uint64_t* values, uint32_t count, uint32_t flags);
  ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, uint64_t offset, size_t length, unsigned access);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, uint64_t offset, size_t length, uint64_t iova, int fd,
                           int access);
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, size_t length, uint64_t iova, int access);
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  int (*rereg_mr)(VerbsMr*, int flags, ibv_pd*, void* address, size_t length, int access);
  int (*resize_cq)(ibv_cq*, int capacity);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  void (*unimport_dm)(ibv_dm*);
  void (*unimport_mr)(ibv_mr*);
  void (*unimport_pd)(ibv_pd*);
};

static_assert(sizeof(DeviceOps) == 72);
static_assert(sizeof(VerbsDevice) == 712);
static_assert(sizeof(MatchEntry) == 24);
static_assert(sizeof(SysfsDevice) == 992);
static_assert(sizeof(VerbsMr) == 56);
static_assert(sizeof(VerbsQp) == sizeof(ibv_qp_ex) + 16);  // to which operations are added
static_assert(sizeof(verbs_context) == 648);
static_assert(sizeof(ContextOps) == 608);
static_assert(offsetof(ContextOps, free_context) == 312);
static_assert(offsetof(ContextOps, poll_cq) == 424);
static_assert(offsetof(ContextOps, reg_mr) == 544);

}  // namespace rocemu::provider

// What libibverbs exports for providers only.
extern "C" {
void verbs_register_driver_34(const rocemu::provider::DeviceOps* ops);

/// Allocates `size` zeroed bytes, of which the verbs_context is `context_offset` bytes in (it is
/// passed as a pointer), and prepares it. From then on the context owns cmd_fd.
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, size_t size,
                                    verbs_context* context_offset, uint32_t driver_id);

/// Closes cmd_fd and async_fd and releases what belongs to libibverbs, but not the memory.
void verbs_uninit_context(verbs_context* context);

/// Takes over the operations that are not null.
void verbs_set_ops(verbs_context* context, const rocemu::provider::ContextOps* ops);
}
