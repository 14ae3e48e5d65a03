// The control protocol: what a client asks of the NIC by message rather than by doorbell.
//
// One SOCK_SEQPACKET connection to SOCKET_DIR/dev/infiniband/uverbsN is one ibv_context of device
// N. The client sends one Request, the daemon answers with one Reply of the same op and sequence;
// both have a fixed size, so a message of any other size is garbage and ends the client. File
// descriptors travel beside the message (SCM_RIGHTS) as noted per operation. These structs are also
// the engine's input and what a journal holds, so they contain no pointers that anybody follows.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

inline constexpr uint32_t kMagic = 0x65636f72;  // "roce" in memory on a little-endian machine
/// Both sides must speak the same version; there is no negotiation, since they are built together.
inline constexpr uint32_t kVersion = 1;

/// Values of ours that a reply's error may have beside errno's: none. Errors are errno values.
enum class Op : uint32_t {
  kHello = 1,  // sends: /proc/self/mem opened O_RDWR; receives: context memory, doorbell
               // eventfd, async event socket
  kQueryDevice,
  kQueryPort,
  kCreateChannel,  // receives: the completion channel's socket
  kAllocPd,
  kDeallocPd,
  kRegMr,
  kDeregMr,
  kCreateCq,   // receives: the CQ's memory
  kDestroyCq,  // sends: the completion channel's socket (if any), the async event socket
  kCreateQp,   // receives: the QP's memory
  kModifyQp,
  kQueryQp,
  kDestroyQp,  // sends: the async event socket
  kCreateAh,
  kDestroyAh,
};

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
  char fw_ver[64];
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
  uint8_t reserved[3];
};

struct Request {
  uint32_t magic;
  uint32_t version;
  Op op;
  uint32_t sequence;  // chosen by the client, echoed in the reply
  union Body {
    struct {
      uint32_t port;
    } query_port;
    struct {
      uint32_t handle;
    } object;  // dealloc_pd, dereg_mr, destroy_cq, destroy_ah, destroy_qp and query_qp (the QPN)
    struct {
      uint32_t pd;
      uint32_t access;  // AccessFlags
      uint64_t address;
      uint64_t length;
      uint64_t iova;  // the address remote and local work requests name
    } reg_mr;
    struct {
      uint64_t user_handle;    // what the completion event carries: the client's ibv_cq *
      uint64_t channel_inode;  // st_ino of the channel's socket, 0 for none
      uint32_t capacity;
      uint32_t comp_vector;
    } create_cq;
    struct {
      uint64_t user_handle;  // what async events carry: the client's ibv_qp *
      uint32_t pd;
      uint32_t send_cq;
      uint32_t recv_cq;
      uint32_t srq;  // 0 for none
      QpType type;
      uint32_t sq_sig_all;
      QpCap cap;
    } create_qp;
    struct {
      uint32_t qpn;
      uint32_t mask;  // QpAttrMask
      QpAttr attr;
    } modify_qp;
    struct {
      uint32_t pd;
      AhAttr attr;
    } create_ah;
    uint8_t raw[256];
  } body;
};
static_assert(sizeof(Request) == 16 + 256);

struct Reply {
  uint32_t magic;
  uint32_t version;
  Op op;
  uint32_t sequence;
  int32_t error;  // 0, or a positive errno value; then the body is zero
  uint32_t reserved;
  union Body {
    struct {
      uint32_t client;  // for messages and `rocemu show`
      uint32_t device_index;
      uint64_t memory_size;  // of the context memory: a DoorbellRing
    } hello;
    DeviceAttr device;
    PortAttr port;
    struct {
      uint64_t inode;  // st_ino of the channel's socket: its name in create_cq
    } create_channel;
    struct {
      uint32_t handle;
    } object;  // alloc_pd, create_ah
    struct {
      uint32_t handle;
      uint32_t lkey;
      uint32_t rkey;
    } reg_mr;
    struct {
      uint32_t handle;
      uint32_t capacity;
      uint64_t memory_size;  // a CqRing and its entries
    } create_cq;
    struct {
      uint32_t qpn;
      uint32_t generation;
      QpCap cap;
      uint32_t reserved;
      WorkQueueLayout send;
      WorkQueueLayout recv;
      uint64_t memory_size;
    } create_qp;
    struct {
      uint32_t state;       // QpState after the change
      uint32_t generation;  // see Cqe::qp_generation
    } modify_qp;
    struct {
      QpAttr attr;
      uint32_t sq_sig_all;
      uint32_t type;
    } query_qp;
    struct {
      // Events of the object that the client has read or will read; it must wait until the
      // application acknowledged that many (ibv_ack_cq_events(3), ibv_ack_async_event(3)).
      uint32_t completion_events;
      uint32_t async_events;
    } destroyed;
    uint8_t raw[320];
  } body;
};
static_assert(sizeof(Reply) == 24 + 320);

/// What a read() of an event socket yields: the layout libibverbs expects of the kernel.
struct CompletionEventRecord {
  uint64_t cq_user_handle;
};
static_assert(sizeof(CompletionEventRecord) == 8);

struct AsyncEventRecord {
  uint64_t element;  // the object's user handle, or the port number
  uint32_t event_type;
  uint32_t reserved;
};
static_assert(sizeof(AsyncEventRecord) == 16);

}  // namespace rocemu::abi
