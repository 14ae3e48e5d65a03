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
#error "verbs_provider/private_abi.h does not describe this private ABI"
#endif
#ifndef __x86_64__
#error "verbs_provider/private_abi.h describes x86-64"
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

/// An operation that we do not provide: its type does not matter.
using OtherOp = void (*)();

/// One context's operations, by name in alphabetical order. Null ones are left to libibverbs, which
/// answers EOPNOTSUPP.
struct ContextOps {
  OtherOp advise_mr;
  OtherOp alloc_dm;
  OtherOp alloc_mw;
  OtherOp alloc_null_mr;
  OtherOp alloc_parent_domain;
  ibv_pd* (*alloc_pd)(ibv_context*);
  OtherOp alloc_td;
  OtherOp async_event;
  OtherOp attach_counters_point_flow;
  OtherOp attach_mcast;
  OtherOp bind_mw;
  OtherOp close_xrcd;
  OtherOp cq_event;
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  OtherOp create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int capacity, ibv_comp_channel*, int comp_vector);
  OtherOp create_cq_ex;
  OtherOp create_flow;
  OtherOp create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  OtherOp create_rwq_ind_table;
  OtherOp create_srq;
  OtherOp create_srq_ex;
  OtherOp create_wq;
  OtherOp dealloc_mw;
  int (*dealloc_pd)(ibv_pd*);
  OtherOp dealloc_td;
  int (*dereg_mr)(VerbsMr*);
  int (*destroy_ah)(ibv_ah*);
  OtherOp destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  OtherOp destroy_flow;
  OtherOp destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  OtherOp destroy_rwq_ind_table;
  OtherOp destroy_srq;
  OtherOp destroy_wq;
  OtherOp detach_mcast;
  void (*free_context)(ibv_context*);
  OtherOp free_dm;
  OtherOp get_srq_num;
  OtherOp import_dm;
  OtherOp import_mr;
  OtherOp import_pd;
  OtherOp modify_cq;
  OtherOp modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  OtherOp modify_qp_rate_limit;
  OtherOp modify_srq;
  OtherOp modify_wq;
  OtherOp open_qp;
  OtherOp open_xrcd;
  int (*poll_cq)(ibv_cq*, int num_entries, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad_wr);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad_wr);
  OtherOp post_srq_ops;
  OtherOp post_srq_recv;
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         size_t attr_size);
  OtherOp query_ece;
  int (*query_port)(ibv_context*, uint8_t port, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  OtherOp query_qp_data_in_order;
  OtherOp query_rt_values;
  OtherOp query_srq;
  OtherOp read_counters;
  OtherOp reg_dm_mr;
  OtherOp reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, size_t length, uint64_t iova, int access);
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  OtherOp rereg_mr;
  OtherOp resize_cq;
  OtherOp set_ece;
  OtherOp unimport_dm;
  OtherOp unimport_mr;
  OtherOp unimport_pd;
};

static_assert(sizeof(DeviceOps) == 72);
static_assert(sizeof(VerbsDevice) == 712);
static_assert(sizeof(MatchEntry) == 24);
static_assert(sizeof(SysfsDevice) == 992);
static_assert(sizeof(VerbsMr) == 56);
static_assert(sizeof(VerbsQp) == 368);
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
