// The state of a fabric, as `rocemu show` prints it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/abi/ucma.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/simulated_network.h"

namespace rocemu::engine {

struct PdSnapshot {
  PdId id;
  ClientId client;
  uint32_t users;  // objects in it
};

struct QpSnapshot {
  QpNumber number;
  ClientId client;
  PdId pd;  // 0: none, for an XRC target QP
  abi::QpType type;
  abi::QpState state;
  CqId send_cq, recv_cq;  // 0: none, for an XRC target QP
  SrqId srq;              // 0: none
  uint32_t dest_qpn;
  uint32_t sq_psn;        // the first PSN that it sends, set by ibv_modify_qp(3)
  uint32_t rq_psn;        // the first PSN that it expects
  uint32_t send_psn;      // next PSN to send
  uint32_t unacked_psn;   // oldest unacknowledged PSN
  uint32_t expected_psn;  // of the responder
  uint32_t msn;
  uint32_t send_posted;  // WQEs waiting or in flight
  uint32_t recv_posted;
};

struct CqSnapshot {
  CqId id;
  ClientId client;
  uint32_t capacity;
  uint32_t waiting;  // unpolled completions, by the client's account
  bool armed;
  bool overrun;
};

struct SrqSnapshot {
  SrqId id;
  ClientId client;
  PdId pd;
  abi::SrqType type;
  CqId cq;  // for XRC
  uint32_t max_wr;
  uint32_t posted;  // WQEs that no message has taken
  uint32_t limit;   // 0: not armed
};

struct XrcdSnapshot {
  XrcdId id;
  std::vector<ClientId> clients;
};

struct MrSnapshot {
  MrId id;
  ClientId client;
  PdId pd;
  uint64_t address;
  uint64_t length;
  uint32_t lkey, rkey;
  uint32_t access;
  abi::RegionKind kind;
  uint32_t windows;  // bound to it
};

struct MwSnapshot {
  MwId id;
  ClientId client;
  abi::MwType type;
  uint32_t rkey;
  bool bound;
  MrId region;  // if bound, like the next members
  uint64_t address;
  uint64_t length;
  uint32_t access;
  QpNumber qp;  // for type 2
};

/// The names and values of a device's counters in a simulated network. The names are snake_case,
/// and users may rely on them.
using CounterList = std::vector<std::pair<std::string_view, uint64_t>>;

struct DeviceSnapshot {
  std::string name;
  std::vector<std::string> gids;
  abi::PortState port_state;
  bool removed;
  std::string profile;
  bool has_been_prepared;   // a program requested a CQ or a QP
  bool has_been_posted_to;  // a work request was posted
  uint32_t failed_late;     // opcodes that the profile made fail when they complete
  abi::Mtu active_mtu;
  uint32_t ah_count;
  std::vector<PdSnapshot> pds;
  std::vector<QpSnapshot> qps;
  std::vector<CqSnapshot> cqs;
  std::vector<SrqSnapshot> srqs;
  std::vector<XrcdSnapshot> xrcds;
  std::vector<MrSnapshot> mrs;
  std::vector<MwSnapshot> mws;
  Counters counters;
  std::optional<PauseCounters> pauses;  // of its port in a simulated network
  CounterList network_counters;         // empty for a device without a network
};

/// A listening rdma_cm id
struct ListenerSnapshot {
  uint32_t port_space;  // librdmacm's number
  std::string address;  // unspecified if it listens on all devices
  uint16_t port;
};

/// The states of an rdma_cm id in the kernel, with the kernel's numbers (enum rdma_cm_state)
enum class RdmaIdState : uint8_t {
  kIdle,
  kAddrQuery,
  kAddrResolved,
  kRouteQuery,
  kRouteResolved,
  kConnect,  // and connected
  kDisconnect,
  kAddrBound,
  kListen,
  kDeviceRemoval,
  kDestroying,
};

/// An rdma_cm id.
struct RdmaIdSnapshot {
  uint32_t number;
  CmChannelId channel;
  std::optional<DeviceIndex> device;
  RdmaIdState state;
  abi::ucma::PortSpace port_space;
  abi::QpType qp_type;
  uint32_t qpn;                                    // 0: none yet
  abi::ucma::SockaddrStorage source, destination;  // zero while they are not known
};

struct FabricSnapshot {
  std::vector<DeviceSnapshot> devices;
  std::vector<ListenerSnapshot> listeners;
  std::vector<RdmaIdSnapshot> rdma_ids;  // by number
};

class Fabric;
namespace cm {
class RdmaCm;
}  // namespace cm

FabricSnapshot take_snapshot(const Fabric& fabric, const cm::RdmaCm& rdma_cm);

}  // namespace rocemu::engine
