// Attributes of devices, ports, QPs and address handles in requests and replies (operations.h)
#pragma once

#include <cstdint>

#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

/// A location in the memory that client and daemon share. This memory consists of segments,
/// numbered from 0; the client maps a segment when a reply first refers to it.
struct SharedRange {
  uint64_t offset;  // bytes from the start of the segment
  uint64_t size;
  uint32_t segment;
  uint32_t reserved;
};
static_assert(sizeof(SharedRange) == 24);

struct QpCap {
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline_data;
};

struct AhAttr {
  uint8_t dgid[16];
  uint32_t flow_label;
  uint16_t dlid;
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t sl;
  uint8_t src_path_bits;
  uint8_t static_rate;
  uint8_t is_global;
  uint8_t port_num;
  uint8_t reserved[2];
};
static_assert(sizeof(AhAttr) == 32);

struct QpAttr {
  uint32_t qp_state;  // QpState
  uint32_t cur_qp_state;
  uint32_t path_mtu;  // Mtu
  uint32_t path_mig_state;
  uint32_t qkey;
  uint32_t rq_psn;
  uint32_t sq_psn;
  uint32_t dest_qp_num;
  uint32_t qp_access_flags;
  QpCap cap;
  AhAttr ah_attr;
  AhAttr alt_ah_attr;
  uint16_t pkey_index;
  uint16_t alt_pkey_index;
  uint8_t en_sqd_async_notify;
  uint8_t sq_draining;
  uint8_t max_rd_atomic;
  uint8_t max_dest_rd_atomic;
  uint8_t min_rnr_timer;
  uint8_t port_num;
  uint8_t timeout;
  uint8_t retry_cnt;
  uint8_t rnr_retry;
  uint8_t alt_port_num;
  uint8_t alt_timeout;
  uint8_t reserved[1];
  uint32_t rate_limit;
};

struct DeviceAttr {
  uint64_t node_guid;  // host byte order
  uint64_t sys_image_guid;
  uint64_t max_mr_size;
  uint64_t page_size_cap;
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hw_ver;
  uint32_t device_cap_flags;
  uint32_t max_qp;
  uint32_t max_qp_wr;
  uint32_t max_sge;
  uint32_t max_sge_rd;
  uint32_t max_cq;
  uint32_t max_cqe;
  uint32_t max_mr;
  uint32_t max_pd;
  uint32_t max_qp_rd_atom;
  uint32_t max_res_rd_atom;
  uint32_t max_qp_init_rd_atom;
  uint32_t atomic_cap;
  uint32_t max_ah;
  uint32_t max_srq;
  uint32_t max_srq_wr;
  uint32_t max_srq_sge;
  uint32_t max_mw;
  uint32_t max_mcast_grp;
  uint32_t max_mcast_qp_attach;
  uint32_t max_total_mcast_qp_attach;
  uint32_t max_inline_data;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay;
  uint8_t phys_port_cnt;
  uint32_t num_comp_vectors;
  uint32_t reserved;
  uint64_t max_dm_size;       // bytes
  uint64_t timestamp_mask;    // valid bits of a completion's timestamp
  uint64_t hca_core_clock;    // kHz of the timestamp's clock
  uint64_t odp_general_caps;  // ibv_odp_general_caps
  uint32_t odp_caps[4];       // ibv_odp_transport_cap_bits of RC, UC, UD, XRC
  uint32_t max_cq_moderation_count;
  uint32_t max_cq_moderation_period;  // microseconds
  char fw_ver[40];
  uint64_t device_cap_flags_ex;  // includes the bits of device_cap_flags
};

/// The kind of memory behind a memory region
enum class RegionKind : uint32_t {
  kMemory = 0,  // the client's memory
  kNull,        // nothing: reads return zeros, writes are dropped (ibv_alloc_null_mr(3))
  kDevice,      // device memory, which is a mapping of the client's as well (ibv_reg_dm_mr(3))
};

enum class MwType : uint32_t { k1 = 1, k2 = 2 };

enum class SrqType : uint32_t { kBasic = 0, kXrc = 1 };

/// Bits of the attribute mask of ibv_modify_srq(3).
enum SrqAttrMask : uint32_t { kSrqMaxWr = 1u << 0, kSrqLimit = 1u << 1 };

/// The flags of ibv_rereg_mr(3)
enum ReregFlags : uint32_t {
  kReregTranslation = 1u << 0,
  kReregPd = 1u << 1,
  kReregAccess = 1u << 2,
};

struct PortAttr {
  uint32_t state;  // PortState
  uint32_t max_mtu;
  uint32_t active_mtu;
  uint32_t gid_tbl_len;
  uint32_t port_cap_flags;
  uint32_t max_msg_sz;
  uint32_t bad_pkey_cntr;
  uint32_t qkey_viol_cntr;
  uint16_t pkey_tbl_len;
  uint8_t active_width;
  uint8_t active_speed;
  uint8_t phys_state;
  uint8_t max_vl_num;
  uint8_t link_layer;  // LinkLayer
  uint8_t lmc;
  uint16_t lid;
  uint16_t sm_lid;
};

/// The values of ibv_port_attr::link_layer (IBV_LINK_LAYER_...)
enum class LinkLayer : uint8_t { kUnspecified = 0, kInfiniBand = 1, kEthernet = 2 };

/// The value of Reply::error with which a verb fails without changing errno.
inline constexpr int32_t kErrnoUntouched = -1;

/// The ways in which the NIC that a device imitates differs from the man page when work requests
/// are posted. A member is 0 if there is no difference.
struct PostRules {
  uint32_t refused_opcodes;  // bits of WrOpcode that ibv_post_send(3) refuses
  int32_t opcode_error;      // the error for refused_opcodes, which may be negative; 0: EINVAL
  int32_t inline_error;      // the error for more inline data than the QP was granted; 0: EINVAL
  uint32_t max_read_sge;     // maximum SGEs of an RDMA READ; 0: that of the QP
  uint32_t no_inline_room;   // not 0: the provider requests no more inline data than the program
  uint32_t most_posted;  // maximum work requests in a queue before ENOMEM; 0: all that were granted
};

}  // namespace rocemu::abi
