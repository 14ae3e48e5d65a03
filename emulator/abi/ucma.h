// The commands and events of librdmacm on an rdma_cm event channel.
//
// Events are messages on the channel itself, one EventResponse each, and the program's kGetEvent is
// a recv(). So the channel is readable exactly while there is an event. When the program has read a
// connect request, the shim notifies the daemon, which then makes room in the listener's backlog.
// This notification is a kGetEvent that contains a RequestRead, without descriptors or a reply. If
// a rule makes rdma_get_cm_event() fail for an event, an event of type kGetEventFailed arrives
// before that event.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/abi/named_enum.h"

namespace rocemu::abi::ucma {

inline constexpr uint32_t kMagic = 0x616d6375;  // "ucma" in memory on a little-endian machine
inline constexpr uint32_t kVersion = 3;

/// The commands, with the kernel's numbers and names. kGetEvent carries a RequestRead to the
/// daemon. The value of kSetOption follows its struct. kOpenChannel does not exist in the kernel:
/// it is the shim's first command, which asks whether a rule makes open() fail.
#define ROCEMU_CM_COMMANDS(V)                  \
  V(kCreateId, create_id, 0)                   \
  V(kDestroyId, destroy_id, 1)                 \
  V(kBindIp, bind_ip, 2)                       \
  V(kResolveIp, resolve_ip, 3)                 \
  V(kResolveRoute, resolve_route, 4)           \
  V(kQueryRoute, query_route, 5)               \
  V(kConnect, connect, 6)                      \
  V(kListen, listen, 7)                        \
  V(kAccept, accept, 8)                        \
  V(kReject, reject, 9)                        \
  V(kDisconnect, disconnect, 10)               \
  V(kInitQpAttr, init_qp_attr, 11)             \
  V(kGetEvent, get_event, 12)                  \
  V(kGetOption, get_option, 13)                \
  V(kSetOption, set_option, 14)                \
  V(kNotify, notify, 15)                       \
  V(kJoinIpMcast, join_ip_mcast, 16)           \
  V(kLeaveMcast, leave_mcast, 17)              \
  V(kMigrateId, migrate_id, 18)                \
  V(kQuery, query, 19)                         \
  V(kBind, bind, 20)                           \
  V(kResolveAddr, resolve_addr, 21)            \
  V(kJoinMcast, join_mcast, 22)                \
  V(kResolveIbService, resolve_ib_service, 23) \
  V(kWriteCmEvent, write_cm_event, 24)         \
  V(kOpenChannel, open_channel, 25)
ROCEMU_NAMED_ENUM(Command, ROCEMU_CM_COMMANDS);
inline constexpr uint32_t kKernelCommands = 25;
inline constexpr uint32_t kCommands = 26;
static_assert(std::size(kCommandNames) == kCommands);

/// The size, in bytes, of the longest command, which contains an option's value or a ResolveAddr.
inline constexpr size_t kMaxCommand = 1024;
/// The size, in bytes, of the longest response.
inline constexpr size_t kMaxResponse = 336;

struct CommandHeader {
  uint32_t magic;
  uint32_t version;
  Command command;
  uint32_t in_size;   // bytes that follow
  uint32_t out_size;  // space for the response
};
static_assert(sizeof(CommandHeader) == 20);

struct ReplyHeader {
  uint32_t magic;
  uint32_t version;
  int32_t error;      // 0, or a positive errno value; then there is no response
  uint32_t out_size;  // bytes that follow
};
static_assert(sizeof(ReplyHeader) == 16);

enum class PortSpace : uint16_t { kIpoib = 0x0002, kTcp = 0x0106, kUdp = 0x0111, kIb = 0x013f };

/// The values of rdma_cm_event_type (RDMA_CM_EVENT_...). kGetEventFailed does not exist in the
/// kernel, and programs do not see it: it makes kGetEvent fail with the errno in `status` instead
/// of returning the event after it.
#define ROCEMU_CM_EVENT_TYPES(V)              \
  V(kAddrResolved, ADDR_RESOLVED, 0)          \
  V(kAddrError, ADDR_ERROR, 1)                \
  V(kRouteResolved, ROUTE_RESOLVED, 2)        \
  V(kRouteError, ROUTE_ERROR, 3)              \
  V(kConnectRequest, CONNECT_REQUEST, 4)      \
  V(kConnectResponse, CONNECT_RESPONSE, 5)    \
  V(kConnectError, CONNECT_ERROR, 6)          \
  V(kUnreachable, UNREACHABLE, 7)             \
  V(kRejected, REJECTED, 8)                   \
  V(kEstablished, ESTABLISHED, 9)             \
  V(kDisconnected, DISCONNECTED, 10)          \
  V(kDeviceRemoval, DEVICE_REMOVAL, 11)       \
  V(kMulticastJoin, MULTICAST_JOIN, 12)       \
  V(kMulticastError, MULTICAST_ERROR, 13)     \
  V(kAddrChange, ADDR_CHANGE, 14)             \
  V(kTimewaitExit, TIMEWAIT_EXIT, 15)         \
  V(kAddrinfoResolved, ADDRINFO_RESOLVED, 16) \
  V(kAddrinfoError, ADDRINFO_ERROR, 17)       \
  V(kUser, USER, 18)                          \
  V(kInternal, INTERNAL, 19)                  \
  V(kGetEventFailed, GET_EVENT_FAILED, 0xffffffff)
ROCEMU_NAMED_ENUM(EventType, ROCEMU_CM_EVENT_TYPES);

/// A sockaddr_in, sockaddr_in6 or sockaddr_ib, unchanged from the program.
struct SockaddrIn6 {
  uint8_t bytes[28];
};
struct alignas(8) SockaddrStorage {
  uint8_t bytes[128];
};

struct CreateId {
  uint64_t uid;
  uint64_t response;
  PortSpace port_space;
  uint8_t qp_type;
  uint8_t reserved[5];
};
static_assert(sizeof(CreateId) == 24);

struct CreateIdResponse {  // also of kJoinIpMcast and kJoinMcast
  uint32_t id;
};

struct DestroyId {  // also kLeaveMcast
  uint64_t response;
  uint32_t id;
  uint32_t reserved;
};
static_assert(sizeof(DestroyId) == 16);

/// The response to kDestroyId, kLeaveMcast and kMigrateId: the number of events that the program
/// has read or will read.
struct EventsReported {
  uint32_t events_reported;
};

struct BindIp {
  uint64_t response;
  SockaddrIn6 address;
  uint32_t id;
};
static_assert(sizeof(BindIp) == 40);

struct Bind {
  uint32_t id;
  uint16_t address_size;
  uint16_t reserved;
  SockaddrStorage address;
};
static_assert(sizeof(Bind) == 136);

struct ResolveIp {
  SockaddrIn6 source;
  SockaddrIn6 destination;
  uint32_t id;
  uint32_t timeout_ms;
};
static_assert(sizeof(ResolveIp) == 64);

struct ResolveAddr {
  uint32_t id;
  uint32_t timeout_ms;
  uint16_t source_size;
  uint16_t destination_size;
  uint32_t reserved;
  SockaddrStorage source;
  SockaddrStorage destination;
};
static_assert(sizeof(ResolveAddr) == 272);

struct ResolveRoute {
  uint32_t id;
  uint32_t timeout_ms;
};

enum class QueryKind : uint32_t { kAddr, kPath, kGid };

struct Query {  // also kQueryRoute, which ignores `kind`
  uint64_t response;
  uint32_t id;
  QueryKind kind;
};
static_assert(sizeof(Query) == 16);

/// ib_user_path_rec.
struct UserPathRecord {
  uint8_t dgid[16];
  uint8_t sgid[16];
  uint16_t dlid;  // big-endian, as slid, flow_label and pkey are
  uint16_t slid;
  uint32_t raw_traffic;
  uint32_t flow_label;
  uint32_t reversible;
  uint32_t mtu;
  uint16_t pkey;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t numb_path;
  uint8_t sl;
  uint8_t mtu_selector;
  uint8_t rate_selector;
  uint8_t rate;
  uint8_t packet_life_time_selector;
  uint8_t packet_life_time;
  uint8_t preference;
};
static_assert(sizeof(UserPathRecord) == 64);

struct QueryRouteResponse {
  uint64_t node_guid;  // big-endian; 0 while the id has no device
  UserPathRecord paths[2];
  SockaddrIn6 source;
  SockaddrIn6 destination;
  uint32_t num_paths;
  uint8_t port;
  uint8_t reserved[3];
  uint32_t ibdev_index;
  uint32_t reserved1;
};
static_assert(sizeof(QueryRouteResponse) == 208);

struct QueryAddrResponse {  // of QueryKind::kAddr and kGid
  uint64_t node_guid;
  uint8_t port;
  uint8_t reserved;
  uint16_t pkey;
  uint16_t source_size;
  uint16_t destination_size;
  SockaddrStorage source;
  SockaddrStorage destination;
  uint32_t ibdev_index;
  uint32_t reserved1;
};
static_assert(sizeof(QueryAddrResponse) == 280);

/// ib_path_rec_data: `record` is a path record in the SA's format (IBTA vol 1, 15.2.5.16).
struct PathData {
  uint32_t flags;
  uint32_t reserved;
  uint8_t record[64];
};
static_assert(sizeof(PathData) == 72);
enum PathFlags : uint32_t {
  kPathGmp = 1,
  kPathPrimary = 2,
  kPathAlternate = 4,
  kPathOutbound = 8,
  kPathInbound = 16,
  kPathInboundReverse = 32,
};
inline constexpr uint32_t kPathBidirectional = kPathOutbound | kPathInboundReverse;

struct QueryPathResponse {
  uint32_t num_paths;
  uint32_t reserved;
  PathData paths[1];
};

inline constexpr size_t kMaxPrivateData = 256;

struct ConnParam {
  uint32_t qp_num;
  uint32_t qkey;
  uint8_t private_data[kMaxPrivateData];
  uint8_t private_data_len;
  uint8_t srq;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t valid;
};
static_assert(sizeof(ConnParam) == 272);

/// ib_uverbs_ah_attr.
struct AhAttr {
  uint8_t dgid[16];
  uint32_t flow_label;
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t reserved;
  uint16_t dlid;
  uint8_t sl;
  uint8_t src_path_bits;
  uint8_t static_rate;
  uint8_t is_global;
  uint8_t port_num;
  uint8_t reserved1;
};
static_assert(sizeof(AhAttr) == 32);

struct UdParam {
  uint32_t qp_num;
  uint32_t qkey;
  AhAttr ah_attr;
  uint8_t private_data[kMaxPrivateData];
  uint8_t private_data_len;
  uint8_t reserved[7];
};
static_assert(sizeof(UdParam) == 304);

struct Ece {
  uint32_t vendor_id;
  uint32_t attr_mod;
};

struct Connect {
  ConnParam param;
  uint32_t id;
  uint32_t reserved;
  Ece ece;  // missing in programs that were built before it existed
};
static_assert(sizeof(Connect) == 288);

struct Listen {
  uint32_t id;
  uint32_t backlog;
};

struct Accept {
  uint64_t uid;
  ConnParam param;
  uint32_t id;
  uint32_t reserved;
  Ece ece;  // missing in programs that were built before it existed
};
static_assert(sizeof(Accept) == 296);

struct Reject {
  uint32_t id;
  uint8_t private_data_len;
  uint8_t reason;
  uint8_t reserved[2];
  uint8_t private_data[kMaxPrivateData];
};
static_assert(sizeof(Reject) == 264);

struct Disconnect {
  uint32_t id;
};

struct InitQpAttr {
  uint64_t response;
  uint32_t id;
  uint32_t qp_state;
};
static_assert(sizeof(InitQpAttr) == 16);

/// ib_uverbs_qp_attr.
struct QpAttrResponse {
  uint32_t qp_attr_mask;
  uint32_t qp_state;
  uint32_t cur_qp_state;
  uint32_t path_mtu;
  uint32_t path_mig_state;
  uint32_t qkey;
  uint32_t rq_psn;
  uint32_t sq_psn;
  uint32_t dest_qp_num;
  uint32_t qp_access_flags;
  AhAttr ah_attr;
  AhAttr alt_ah_attr;
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline_data;
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
  uint8_t reserved[5];
};
static_assert(sizeof(QpAttrResponse) == 144);

struct Notify {
  uint32_t id;
  uint32_t event;  // ibv_event_type
};

enum class JoinFlags : uint16_t { kFullMember, kSendOnlyFullMember };

struct JoinIpMcast {
  uint64_t response;
  uint64_t uid;
  SockaddrIn6 address;
  uint32_t id;
};
static_assert(sizeof(JoinIpMcast) == 48);

struct JoinMcast {
  uint64_t response;
  uint64_t uid;
  uint32_t id;
  uint16_t address_size;
  JoinFlags flags;
  SockaddrStorage address;
};
static_assert(sizeof(JoinMcast) == 152);

struct GetEvent {
  uint64_t response;
};

struct EventResponse {
  uint64_t uid;
  uint32_t id;
  EventType event;
  uint32_t status;
  union Param {
    UdParam ud;  // first, since it is the larger one, and {} zeroes the first member
    ConnParam conn;
  } param;
  uint32_t reserved;  // in transit: the id for which the event counts; the shim clears it
  Ece ece;
};
static_assert(sizeof(EventResponse) == 336 && sizeof(EventResponse::Param) == sizeof(UdParam));
/// The size of the response for programs that were built before `reserved` existed; they have no
/// more space.
inline constexpr size_t kMinEventResponse = offsetof(EventResponse, reserved);
static_assert(kMinEventResponse == 324);

/// A query for a service that a subnet manager knows, by its number or its name
struct ResolveIbService {
  uint32_t id;
  uint32_t reserved;
  uint64_t service_id;
  char service_name[64];
  uint32_t flags;
  uint32_t reserved2;
};
static_assert(sizeof(ResolveIbService) == 88);

/// The request with which the program, or librdmacm in a separate thread, adds an event to the id's
/// channel.
struct WriteCmEvent {
  uint32_t id;
  uint32_t reserved;
  EventType event;  // kUser or kInternal
  uint32_t status;
  union {
    uint64_t arg;
    EventResponse::Param param;  // for its size only
  };
};
static_assert(sizeof(WriteCmEvent) == 16 + sizeof(EventResponse::Param));

struct RequestRead {
  uint32_t id;  // the new one, of the event
};

enum class OptionLevel : uint32_t { kId = 0, kIb = 1 };
enum class IdOption : uint32_t { kTos, kReuseAddress, kAddressFamilyOnly, kAckTimeout };
enum class IbOption : uint32_t { kPath = 1 };

struct SetOption {  // followed by `length` bytes of value
  uint64_t value;
  uint32_t id;
  OptionLevel level;
  uint32_t name;
  uint32_t length;
};
static_assert(sizeof(SetOption) == 24);

struct MigrateId {
  uint64_t response;
  uint32_t id;
  uint32_t fd;  // for the engine: the number of the channel that the id is on
};
static_assert(sizeof(MigrateId) == 16);

}  // namespace rocemu::abi::ucma
