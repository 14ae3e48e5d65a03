// The control protocol: what a client asks of the NIC by message rather than by doorbell.
//
// One SOCK_SEQPACKET connection to SOCKET_DIR/dev/infiniband/uverbsN is one ibv_context of device
// N. The client sends one Request, the daemon answers with one Reply of the same op and sequence;
// both have a fixed size, so a message of any other size is garbage and ends the client. File
// descriptors travel beside the message (SCM_RIGHTS) as noted per operation. These structs are also
// the engine's input and what a journal holds, so they contain no pointers that anybody follows,
// and a Request{} or Reply{} has no byte that is not zero: what was in memory before is nobody's
// concern, and would not be the same in a replay.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/abi/rings.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

inline constexpr uint32_t kMagic = 0x65636f72;  // "roce" in memory on a little-endian machine
/// Both sides must speak the same version; there is no negotiation, since they are built together.
inline constexpr uint32_t kVersion = 3;

/// Values of ours that a reply's error may have beside errno's: none. Errors are errno values.
enum class Op : uint32_t {
  kHello = 1,  // sends: the client's end of this connection, /proc/self/mem opened O_RDWR (-1
               // cannot be sent: it may be missing), and to import, the client's end of the
               // connection of the context to share; receives: the first segment, doorbell eventfd,
               // async event socket
  kQueryDevice,
  kQueryPort,
  kCreateChannel,  // receives: the completion channel's socket
  kAllocPd,
  kDeallocPd,
  kRegMr,
  kDeregMr,
  kCreateCq,
  kDestroyCq,  // sends: the completion channel's socket (if any), the async event socket
  kCreateQp,
  kModifyQp,
  kQueryQp,
  kDestroyQp,  // sends: the async event socket
  kCreateAh,
  kDestroyAh,
  kReregMr,
  kQueryMr,   // what ibv_import_mr needs to know of a region of a shared context
  kAdviseMr,  // at most kMaxAdviseSges at a time
  kAllocMw,
  kDeallocMw,
  kAllocDm,  // only accounts for it: device memory is a mapping of the client's
  kFreeDm,
  kResizeCq,  // the completions not yet taken are in the CQ's new memory, too. The client polls
              // nothing meanwhile
  kModifyCq,
  kCreateSrq,
  kModifySrq,
  kQuerySrq,
  kDestroySrq,  // sends: the SRQ's CQ's channel's socket (if any), the async event socket
  kOpenXrcd,
  kCloseXrcd,
  kOpenQp,  // a further reference to an XRC target QP; kDestroyQp gives it back. No memory: a
            // target QP has no rings
  kAttachMcast,
  kDetachMcast,
  kQueryPd,  // of a shared context, for ibv_import_pd

  // What clients do by themselves. While DoorbellRing::asked_for says so they ask first whether a
  // rule makes it fail; the object is the QP, SRQ or CQ if there is one, and the reply says nothing
  // else.
  kPostSend,
  kBindMw,
  kPostRecv,
  kPostSrqRecv,
  kPollCq,
  kReqNotifyCq,
  kNextPoll,
  kGetSrqNum,
  kAllocTd,
  kDeallocTd,
  kAllocParentDomain,
  kDeallocParentDomain,
  kMemcpyToDm,
  kMemcpyFromDm,
  kQueryRtValues,

  // Not the engine's concern: how the daemon reaches what is registered.
  kLendMemory,      // sends: a memory file, sealed against shrinking, that this memory is pages of
  kTakeBackMemory,  // what was lent at that address
  kMemoryMayBlock,  // from now on: memory may be waited for that the program has to provide

  kOpenSegment,  // receives: a segment of the memory that client and daemon share
};
inline constexpr Op kFirstAskedFor = Op::kPostSend;
inline constexpr Op kLastOp = Op::kQueryRtValues;  // of the engine's

/// Pieces of memory, and bytes in all, that a client may lend at a time.
inline constexpr uint32_t kMaxLentPieces = 64;
inline constexpr uint64_t kMaxLentBytes = uint64_t{64} << 20;

constexpr bool destroys(Op op) {
  switch (op) {
    case Op::kDeallocPd:
    case Op::kDeregMr:
    case Op::kDestroyCq:
    case Op::kDestroyQp:
    case Op::kDestroyAh:
    case Op::kDeallocMw:
    case Op::kDestroySrq:
      return true;
    default:
      return false;
  }
}

constexpr bool may_be_asked_for(Op op) {
  return op >= kFirstAskedFor && op <= kLastOp;
}
/// In DoorbellRing::asked_for, of an operation that may be.
constexpr uint32_t asked_for_bit(Op op) {
  return 1u << (static_cast<uint32_t>(op) - static_cast<uint32_t>(kFirstAskedFor));
}

/// Where something lies in the memory that client and daemon share. That consists of segments,
/// which are numbered from 0; the client maps one when it first hears of it.
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
  uint64_t timestamp_mask;    // bits of a completion's timestamp that count
  uint64_t hca_core_clock;    // kHz of the timestamp's clock
  uint64_t odp_general_caps;  // ibv_odp_general_caps
  uint32_t odp_caps[4];       // ibv_odp_transport_cap_bits of RC, UC, UD, XRC
  uint32_t max_cq_moderation_count;
  uint32_t max_cq_moderation_period;  // microseconds
  char fw_ver[40];
  uint64_t device_cap_flags_ex;  // with device_cap_flags among them
};

inline constexpr uint32_t kMaxAdviseSges = 14;

/// What a memory region consists of.
enum class RegionKind : uint32_t {
  kMemory = 0,  // the client's memory
  kNull,        // nothing: reads give zeros, what is written vanishes (ibv_alloc_null_mr(3))
  kDevice,      // device memory, which is a mapping of the client's as well (ibv_reg_dm_mr(3))
};

enum class MwType : uint32_t { k1 = 1, k2 = 2 };

enum class SrqType : uint32_t { kBasic = 0, kXrc = 1 };

/// Bits of the attribute mask of ibv_modify_srq(3).
enum SrqAttrMask : uint32_t { kSrqMaxWr = 1u << 0, kSrqLimit = 1u << 1 };

/// Bits of the flags of ibv_rereg_mr(3).
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
  uint8_t reserved[3];
};

struct Request {
  uint32_t magic;
  uint32_t version;
  Op op;
  uint32_t sequence;  // chosen by the client, echoed in the reply
  union Body {
    uint8_t raw[288];  // first: that is what {} zeroes
    struct {
      uint32_t import;  // non-zero: share the objects of the context whose connection came along
    } hello;
    struct {
      uint32_t port;
    } query_port;
    struct {
      uint32_t handle;
      uint32_t reserved;
      uint64_t user_handle;  // kDestroyQp: which of the client's references to the QP
    } object;                // all operations on one object; a QP's handle is its QPN
    struct {
      uint32_t pd;
      uint32_t access;  // AccessFlags
      uint64_t address;
      uint64_t length;
      uint64_t iova;  // the address remote and local work requests name
      RegionKind kind;
      uint32_t reserved;
    } reg_mr;
    struct {
      uint32_t handle;
      uint32_t flags;  // ReregFlags
      uint32_t pd;
      uint32_t access;
      uint64_t address;
      uint64_t length;
      uint64_t iova;
    } rereg_mr;
    struct {
      uint32_t pd;
      uint32_t advice;  // ibv_advise_mr_advice
      uint32_t flags;   // bit 0: now, and tell whether it could be done
      uint32_t num_sge;
      Sge sges[kMaxAdviseSges];
    } advise_mr;
    struct {
      uint32_t pd;
      MwType type;
    } alloc_mw;
    struct {
      uint64_t length;
      uint32_t log_align;
    } alloc_dm;
    struct {
      uint64_t address;
      uint64_t length;
    } lend_memory;  // take_back_memory
    struct {
      uint32_t segment;
    } open_segment;
    struct {
      uint32_t handle;
      uint32_t capacity;
    } resize_cq;
    struct {
      uint32_t handle;
      uint32_t count;   // completions per event
      uint32_t period;  // microseconds an event waits for more
    } modify_cq;
    struct {
      uint64_t user_handle;  // what async events carry: the client's ibv_srq *
      uint32_t pd;
      SrqType type;
      uint32_t xrcd;  // kXrc
      uint32_t cq;    // kXrc
      uint32_t max_wr;
      uint32_t max_sge;
      uint32_t limit;
    } create_srq;
    struct {
      uint32_t handle;
      uint32_t mask;  // SrqAttrMask
      uint32_t max_wr;
      uint32_t limit;
    } modify_srq;
    struct {
      uint64_t device;     // st_dev and st_ino of the file that names the domain; inode 0 for a
      uint64_t inode;      // domain of its own
      uint32_t create;     // oflags has O_CREAT
      uint32_t exclusive;  // oflags has O_EXCL
    } open_xrcd;
    struct {
      uint64_t user_handle;
      uint32_t xrcd;
      uint32_t qpn;
    } open_qp;
    struct {
      uint32_t qpn;
      uint8_t gid[16];
    } mcast;
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
      uint32_t srq;   // 0 for none
      uint32_t xrcd;  // kXrcRecv, which has neither PD nor CQs nor SRQ
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
  } body;
};
static_assert(sizeof(Request) == 16 + 288);

struct Reply {
  uint32_t magic;
  uint32_t version;
  Op op;
  uint32_t sequence;
  int32_t error;  // 0, or a positive errno value; then the body is zero
  uint32_t reserved;
  union Body {
    uint8_t raw[320];  // first: that is what {} zeroes
    struct {
      uint32_t client;  // for messages and `rocemu show`
      uint32_t device_index;
      uint64_t segment_size;    // of the first segment
      SharedRange doorbells;    // a DoorbellRing, in that segment
      uint64_t clock_start_ns;  // CLOCK_MONOTONIC when device time was 0 (see Cqe::timestamp_ns)
      uint64_t wall_start_ns;   // CLOCK_REALTIME then
      uint32_t num_comp_vectors;
      uint32_t reserved;
    } hello;
    DeviceAttr device;
    PortAttr port;
    struct {
      uint64_t inode;  // st_ino of the channel's socket: its name in create_cq
    } create_channel;
    struct {
      uint32_t handle;
    } object;  // alloc_pd, create_ah, alloc_dm, open_xrcd
    struct {
      uint32_t handle;
      uint32_t lkey;
      uint32_t rkey;
      uint32_t reserved;
      uint64_t address;
      uint64_t length;
    } reg_mr;  // rereg_mr, query_mr
    struct {
      uint32_t handle;
      uint32_t rkey;
    } alloc_mw;
    struct {
      uint32_t handle;
      uint32_t capacity;
      SharedRange memory;  // a CqRing and its entries
    } create_cq;           // resize_cq
    struct {
      uint32_t handle;  // also the number that XRC requests name (ibv_get_srq_num(3))
      uint32_t max_wr;
      uint32_t max_sge;
      uint32_t reserved;
      WorkQueueLayout recv;
      SharedRange memory;
    } create_srq;
    struct {
      uint32_t max_wr;
      uint32_t max_sge;
      uint32_t limit;  // 0 when it was reached and not set anew
    } query_srq;
    struct {
      uint32_t qpn;
      uint32_t type;
      uint32_t state;
    } open_qp;
    struct {
      uint32_t qpn;
      uint32_t generation;
      QpCap cap;
      uint32_t reserved;
      WorkQueueLayout send;
      WorkQueueLayout recv;
      SharedRange memory;
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
    struct {
      uint64_t size;
    } open_segment;
  } body;
};
static_assert(sizeof(Reply) == 24 + 320);

/// Assigning a whole part of a body assigns its padding too, so none of them may have any.
template <class... Parts>
inline constexpr bool kHaveNoPadding = (std::has_unique_object_representations_v<Parts> && ...);
static_assert(
    kHaveNoPadding<decltype(Request::Body::reg_mr), decltype(Request::Body::lend_memory)>);
static_assert(kHaveNoPadding<decltype(Reply::Body::hello), decltype(Reply::Body::device),
                             decltype(Reply::Body::port), decltype(Reply::Body::create_channel),
                             decltype(Reply::Body::object), decltype(Reply::Body::reg_mr),
                             decltype(Reply::Body::alloc_mw), decltype(Reply::Body::create_cq),
                             decltype(Reply::Body::create_srq), decltype(Reply::Body::query_srq),
                             decltype(Reply::Body::open_qp), decltype(Reply::Body::create_qp),
                             decltype(Reply::Body::modify_qp), decltype(Reply::Body::query_qp),
                             decltype(Reply::Body::destroyed)>);

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
