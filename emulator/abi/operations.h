// The requests that a client can send to the NIC: one Op for each request, the bodies of the
// request and its reply, and a row that lists the functions with which programs cause the request
// and the fields that events report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "emulator/abi/attributes.h"
#include "emulator/abi/rings.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

enum class Op : uint32_t {
  /// The client sends its end of this connection and its /proc/self/mem, opened with O_RDWR. It
  /// omits the latter if it cannot open that file. To import a context, the client also sends its
  /// end of that context's connection. The daemon replies with the first segment, the doorbell
  /// eventfd and the async event socket.
  kHello = 1,
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
  kQueryMr,   // data that ibv_import_mr needs for a region of a shared context
  kAdviseMr,  // at most kMaxAdviseSges at a time
  kAllocMw,
  kDeallocMw,
  kAllocDm,  // only counts it: the client itself maps the device memory
  kFreeDm,
  /// When the reply arrives, the CQ's new memory contains all completions that the client has not
  /// taken. The client must not poll between the request and the reply.
  kResizeCq,
  kModifyCq,
  kCreateSrq,
  kModifySrq,
  kQuerySrq,
  kDestroySrq,  // sends: the SRQ's CQ's channel's socket (if any), the async event socket
  kOpenXrcd,
  kCloseXrcd,
  /// Adds a reference to an XRC target QP; kDestroyQp releases the reference. The reply has no
  /// memory, because a target QP has no rings.
  kOpenQp,
  kAttachMcast,
  kDetachMcast,
  kQueryPd,  // of a shared context, for ibv_import_pd

  // Operations that clients normally perform without the daemon. While an operation's bit is set in
  // DoorbellRing::asked_for, a client that wants to perform it first sends this request, and a rule
  // can make the request fail. The request's object is the operation's QP, SRQ or CQ, if it has
  // one. The reply contains nothing but the error.
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

  // A request that does not reach the engine: it changes how the daemon accesses registered memory.
  kMemoryMayBlock,  // from now on, memory may have to be provided by the program

  kOpenSegment,  // receives: a segment of the memory that client and daemon share
};
inline constexpr Op kFirstAskedFor = Op::kPostSend;
inline constexpr Op kLastOp = Op::kQueryRtValues;  // of the engine's

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
/// Returns an operation's bit in DoorbellRing::asked_for. may_be_asked_for() must be true for the
/// operation.
constexpr uint32_t asked_for_bit(Op op) {
  return 1u << (static_cast<uint32_t>(op) - static_cast<uint32_t>(kFirstAskedFor));
}

inline constexpr uint32_t kMaxAdviseSges = 14;

union RequestBody {
  uint8_t raw[288];  // first, because {} zeroes the first member
  struct {
    uint32_t import;  // non-zero: share the objects of the context whose connection was sent
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
    uint64_t iova;  // the address in remote and local work requests
    RegionKind kind;
    uint32_t is_shared;  // 1: the same bytes may be mapped elsewhere, too
  } reg_mr;
  struct {
    uint32_t handle;
    uint32_t flags;  // ReregFlags
    uint32_t pd;
    uint32_t access;
    uint64_t address;
    uint64_t length;
    uint64_t iova;
    uint32_t is_shared;  // as in reg_mr, if kReregTranslation is set
    uint32_t reserved;
  } rereg_mr;
  struct {
    uint32_t pd;
    uint32_t advice;  // ibv_advise_mr_advice
    uint32_t flags;   // bit 0: do it now, and report whether it was possible
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
    uint32_t segment;
  } open_segment;
  struct {
    uint32_t handle;
    uint32_t capacity;
  } resize_cq;
  struct {
    uint32_t handle;
    uint32_t count;   // completions per event
    uint32_t period;  // the time that an event waits for more completions, in microseconds
  } modify_cq;
  struct {
    uint64_t user_handle;  // the value in async events: the client's ibv_srq *
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
    uint64_t inode;      // private domain
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
    uint64_t user_handle;    // the value in the completion event: the client's ibv_cq *
    uint64_t channel_inode;  // st_ino of the channel's socket, 0 for none
    uint32_t capacity;
    uint32_t comp_vector;
  } create_cq;
  struct {
    uint64_t user_handle;  // the value in async events: the client's ibv_qp *
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
};
union ReplyBody {
  uint8_t raw[320];  // first, because {} zeroes the first member
  struct {
    uint32_t client;  // for messages and `rocemu show`
    uint32_t device_index;
    uint64_t segment_size;    // of the first segment
    SharedRange doorbells;    // a DoorbellRing, in that segment
    SharedRange payload;      // a Payload, there too; of size 0 if there is none
    uint64_t clock_start_ns;  // CLOCK_MONOTONIC when device time was 0 (see Cqe::timestamp_ns)
    uint64_t wall_start_ns;   // CLOCK_REALTIME then
    uint32_t num_comp_vectors;
    uint32_t fills_undefined;  // 1: the client fills values that the man pages leave undefined
    PostRules posts;
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
    uint32_t limit;  // 0 if it was reached and not set again
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
    // The number of the object's events that the client has read or will read. ibv_destroy_cq(3),
    // for example, must not return before the application has acknowledged this number
    // (ibv_ack_cq_events(3), ibv_ack_async_event(3)).
    uint32_t completion_events;
    uint32_t async_events;
  } destroyed;
  struct {
    uint64_t size;
  } open_segment;
};
/// Says whether the compiler adds no padding to these parts of a body. Parts that are assigned as a
/// whole must have none, because the assignment copies uninitialized padding.
template <class... Parts>
inline constexpr bool kHaveNoPadding = (std::has_unique_object_representations_v<Parts> && ...);
static_assert(kHaveNoPadding<decltype(RequestBody::reg_mr)>);
static_assert(kHaveNoPadding<decltype(ReplyBody::hello), decltype(ReplyBody::device),
                             decltype(ReplyBody::port), decltype(ReplyBody::create_channel),
                             decltype(ReplyBody::object), decltype(ReplyBody::reg_mr),
                             decltype(ReplyBody::alloc_mw), decltype(ReplyBody::create_cq),
                             decltype(ReplyBody::create_srq), decltype(ReplyBody::query_srq),
                             decltype(ReplyBody::open_qp), decltype(ReplyBody::create_qp),
                             decltype(ReplyBody::modify_qp), decltype(ReplyBody::query_qp),
                             decltype(ReplyBody::destroyed)>);

/// The kind of value in a field of a body. A field that names an object contains the object's
/// handle.
enum class BodyValue : uint8_t {
  kNumber,
  kQp,
  kCq,
  kPd,
  kMr,
  kSrq,
  kAh,
  kXrcd,
  kDm,
  kMrKey,    // an L_Key or R_Key
  kAddress,  // of memory
  kQpType,
  kAccess,      // bits of AccessFlags
  kReregFlags,  // bits of ReregFlags
};

/// A field of a request's or a reply's body, with its name in events
struct BodyField {
  std::string_view key;
  BodyValue kind = BodyValue::kNumber;
  bool of_reply = false;
  uint16_t offset = 0;
  uint16_t size = 0;

  /// Returns whether the field is the object's handle at the start of a request's body.
  constexpr bool is_object_of_request() const {
    return !of_reply && offset == 0 && size == sizeof(uint32_t) && kind != BodyValue::kNumber;
  }

  uint64_t read(const RequestBody& request, const ReplyBody& reply) const {
    const void* const body = of_reply ? static_cast<const void*>(&reply) : &request;
    uint64_t value = 0;
    std::memcpy(&value, static_cast<const char*>(body) + offset, size);  // little-endian
    return value;
  }
};

/// The value of OperationInfo::functions for an operation that no function of libibverbs causes
inline constexpr std::string_view kNoFunction = "-";

struct OperationInfo {
  Op op;
  std::string_view name;  // in events
  /// The libibverbs functions that cause the operation, without "ibv_"; rules use these names. If
  /// the array is empty, the only function has the operation's name.
  std::string_view functions[5] = {};
  /// The fields that events report
  BodyField fields[7] = {};

  template <class Visit>
  constexpr void for_each_function(Visit visit) const {
    if (functions[0].empty()) visit(name);
    for (const std::string_view function : functions) {
      if (!function.empty() && function != kNoFunction) visit(function);
    }
  }
  template <class Visit>
  constexpr void for_each_field(Visit visit) const {
    for (const BodyField& field : fields) {
      if (!field.key.empty()) visit(field);
    }
  }
};

#define ROCEMU_IN(member) false, offsetof(RequestBody, member), sizeof(RequestBody::member)
#define ROCEMU_OUT(member) true, offsetof(ReplyBody, member), sizeof(ReplyBody::member)

namespace operations {

using enum BodyValue;

constexpr BodyField object(BodyValue kind) {
  return {"object", kind, ROCEMU_IN(object.handle)};
}

// The rows. Each lists its functions in the order in which messages list them.
// clang-format off
inline constexpr OperationInfo kRows[] = {
    {Op::kHello, "open_device", {"open_device", "import_device"}},
    {Op::kQueryDevice, "query_device", {"query_device", "query_device_ex"}},
    {Op::kQueryRtValues, "query_rt_values", {"query_rt_values_ex"}},
    {Op::kQueryPort, "query_port", {}, {{"port", kNumber, ROCEMU_IN(query_port.port)}}},
    {Op::kAllocPd, "alloc_pd", {}, {{"pd", kPd, ROCEMU_OUT(object.handle)}}},
    {Op::kDeallocPd, "dealloc_pd", {}, {object(kPd)}},
    {Op::kAllocTd, "alloc_td"},
    {Op::kDeallocTd, "dealloc_td"},
    {Op::kAllocParentDomain, "alloc_parent_domain"},
    {Op::kQueryPd, "query_pd", {"import_pd"}, {object(kPd)}},
    {Op::kRegMr,
     "reg_mr",
     {"reg_mr", "reg_mr_iova", "reg_mr_iova2", "reg_dm_mr", "alloc_null_mr"},
     {{"mr", kMr, ROCEMU_OUT(reg_mr.handle)},
      {"pd", kPd, ROCEMU_IN(reg_mr.pd)},
      {"address", kAddress, ROCEMU_IN(reg_mr.iova)},
      {"length", kNumber, ROCEMU_IN(reg_mr.length)},
      {"access", kAccess, ROCEMU_IN(reg_mr.access)},
      {"lkey", kMrKey, ROCEMU_OUT(reg_mr.lkey)},
      {"rkey", kMrKey, ROCEMU_OUT(reg_mr.rkey)}}},
    {Op::kReregMr,
     "rereg_mr",
     {},
     {{"mr", kMr, ROCEMU_IN(rereg_mr.handle)},
      {"flags", kReregFlags, ROCEMU_IN(rereg_mr.flags)},
      {"lkey", kMrKey, ROCEMU_OUT(reg_mr.lkey)},
      {"rkey", kMrKey, ROCEMU_OUT(reg_mr.rkey)}}},
    {Op::kDeregMr, "dereg_mr", {}, {object(kMr)}},
    {Op::kQueryMr, "query_mr", {"import_mr"}, {object(kMr)}},
    {Op::kAdviseMr,
     "advise_mr",
     {},
     {{"pd", kPd, ROCEMU_IN(advise_mr.pd)}, {"advice", kNumber, ROCEMU_IN(advise_mr.advice)}}},
    {Op::kAllocMw,
     "alloc_mw",
     {},
     {{"mw", kMr, ROCEMU_OUT(alloc_mw.handle)}, {"rkey", kMrKey, ROCEMU_OUT(alloc_mw.rkey)}}},
    {Op::kDeallocMw, "dealloc_mw", {}, {object(kMr)}},
    {Op::kAllocDm,
     "alloc_dm",
     {},
     {{"dm", kDm, ROCEMU_OUT(object.handle)}, {"length", kNumber, ROCEMU_IN(alloc_dm.length)}}},
    {Op::kFreeDm, "free_dm", {}, {object(kDm)}},
    {Op::kMemcpyToDm, "memcpy_to_dm"},
    {Op::kMemcpyFromDm, "memcpy_from_dm"},
    {Op::kCreateChannel, "create_comp_channel"},
    {Op::kCreateCq,
     "create_cq",
     {"create_cq", "create_cq_ex"},
     {{"cq", kCq, ROCEMU_OUT(create_cq.handle)},
      {"capacity", kNumber, ROCEMU_OUT(create_cq.capacity)}}},
    {Op::kResizeCq,
     "resize_cq",
     {},
     {{"cq", kCq, ROCEMU_IN(resize_cq.handle)},
      {"capacity", kNumber, ROCEMU_OUT(create_cq.capacity)}}},
    {Op::kModifyCq,
     "modify_cq",
     {},
     {{"cq", kCq, ROCEMU_IN(modify_cq.handle)},
      {"count", kNumber, ROCEMU_IN(modify_cq.count)},
      {"period", kNumber, ROCEMU_IN(modify_cq.period)}}},
    {Op::kDestroyCq, "destroy_cq", {}, {object(kCq)}},
    {Op::kCreateQp,
     "create_qp",
     {"create_qp", "create_qp_ex"},
     {{"qp", kQp, ROCEMU_OUT(create_qp.qpn)},
      {"type", kQpType, ROCEMU_IN(create_qp.type)},
      {"send_cq", kCq, ROCEMU_IN(create_qp.send_cq)},
      {"recv_cq", kCq, ROCEMU_IN(create_qp.recv_cq)},
      {"max_send_wr", kNumber, ROCEMU_OUT(create_qp.cap.max_send_wr)},
      {"max_recv_wr", kNumber, ROCEMU_OUT(create_qp.cap.max_recv_wr)}}},
    {Op::kOpenQp, "open_qp", {}, {{"qp", kQp, ROCEMU_IN(open_qp.qpn)}}},
    {Op::kModifyQp, "modify_qp", {}, {{"qp", kQp, ROCEMU_IN(modify_qp.qpn)}}},
    {Op::kQueryQp, "query_qp", {}, {object(kQp)}},
    {Op::kDestroyQp, "destroy_qp", {}, {object(kQp)}},
    {Op::kCreateSrq,
     "create_srq",
     {"create_srq", "create_srq_ex"},
     {{"srq", kSrq, ROCEMU_OUT(create_srq.handle)},
      {"max_wr", kNumber, ROCEMU_OUT(create_srq.max_wr)}}},
    {Op::kGetSrqNum, "get_srq_num", {}, {object(kSrq)}},
    {Op::kModifySrq,
     "modify_srq",
     {},
     {{"srq", kSrq, ROCEMU_IN(modify_srq.handle)},
      {"mask", kNumber, ROCEMU_IN(modify_srq.mask)},
      {"limit", kNumber, ROCEMU_IN(modify_srq.limit)}}},
    {Op::kQuerySrq, "query_srq", {}, {object(kSrq)}},
    {Op::kDestroySrq, "destroy_srq", {}, {object(kSrq)}},
    {Op::kOpenXrcd, "open_xrcd", {}, {{"xrcd", kXrcd, ROCEMU_OUT(object.handle)}}},
    {Op::kCloseXrcd, "close_xrcd", {}, {object(kXrcd)}},
    {Op::kCreateAh,
     "create_ah",
     {"create_ah", "create_ah_from_wc"},
     {{"ah", kAh, ROCEMU_OUT(object.handle)}}},
    {Op::kDestroyAh, "destroy_ah", {}, {object(kAh)}},
    {Op::kAttachMcast, "attach_mcast", {}, {{"qp", kQp, ROCEMU_IN(mcast.qpn)}}},
    {Op::kDetachMcast, "detach_mcast", {}, {{"qp", kQp, ROCEMU_IN(mcast.qpn)}}},
    {Op::kPostSend, "post_send", {"post_send", "wr_complete"}, {object(kQp)}},
    {Op::kBindMw, "bind_mw", {}, {object(kQp)}},
    {Op::kPostRecv, "post_recv", {}, {object(kQp)}},
    {Op::kPostSrqRecv, "post_srq_recv", {}, {object(kSrq)}},
    {Op::kPollCq, "poll_cq", {"poll_cq", "start_poll"}, {object(kCq)}},
    {Op::kNextPoll, "next_poll", {}, {object(kCq)}},
    {Op::kReqNotifyCq, "req_notify_cq", {}, {object(kCq)}},
    {Op::kDeallocParentDomain, "dealloc_parent_domain", {kNoFunction}},
};
// clang-format on

}  // namespace operations

#undef ROCEMU_IN
#undef ROCEMU_OUT

/// The operations that the engine supports
inline constexpr auto& kOperations = operations::kRows;

constexpr const OperationInfo* find_operation(Op op) {
  for (const OperationInfo& one : kOperations) {
    if (one.op == op) return &one;
  }
  return nullptr;
}

static_assert([] {
  for (uint32_t op = 1; op <= static_cast<uint32_t>(kLastOp); ++op) {
    // find_operation() is not used, because with -fsanitize=undefined g++ 12 cannot compare its
    // result here.
    bool known = false;
    for (const OperationInfo& one : kOperations) known |= one.op == static_cast<Op>(op);
    if (!known) return false;
  }
  return std::size(kOperations) == static_cast<size_t>(kLastOp);
}());

/// Returns the operation that a function of libibverbs (named without "ibv_") requests, or Op{} if
/// the engine has none.
constexpr Op operation_of(std::string_view function) {
  Op found{};
  for (const OperationInfo& one : kOperations) {
    if (one.name == function) found = one.op;
    one.for_each_function([&](std::string_view name) {
      if (name == function) found = one.op;
    });
  }
  return found;
}

/// Returns whether the body of a request starts with the handle of an existing object.
constexpr bool begins_with_object(Op op) {
  bool begins = false;
  for (const OperationInfo& one : kOperations) {
    if (one.op != op) continue;
    one.for_each_field([&](const BodyField& field) { begins |= field.is_object_of_request(); });
  }
  return begins;
}

constexpr std::string_view name_of(Op op) {
  const OperationInfo* info = find_operation(op);
  return info == nullptr ? "unknown" : info->name;
}

}  // namespace rocemu::abi
