// The state of a fabric as `rocemu show` prints it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "emulator/engine/ids.h"

namespace rocemu::engine {

struct QpSnapshot {
  QpNumber number;
  ClientId client;
  abi::QpType type;
  abi::QpState state;
  CqId send_cq, recv_cq;
  uint32_t dest_qpn;
  uint32_t send_psn;      // next PSN to send
  uint32_t unacked_psn;   // oldest PSN not acknowledged
  uint32_t expected_psn;  // responder's
  uint32_t msn;
  uint32_t send_posted;  // WQEs waiting or in flight
  uint32_t recv_posted;
};

struct CqSnapshot {
  CqId id;
  ClientId client;
  uint32_t capacity;
  uint32_t waiting;  // completions not yet polled
  bool armed;
  bool overrun;
};

struct MrSnapshot {
  MrId id;
  ClientId client;
  uint64_t address;
  uint64_t length;
  uint32_t lkey, rkey;
  uint32_t access;
};

/// Name and value, in a fixed order; names are snake_case and end users may rely on them.
using CounterList = std::vector<std::pair<std::string_view, uint64_t>>;

struct DeviceSnapshot {
  std::string name;
  std::vector<std::string> gids;
  abi::PortState port_state;
  abi::Mtu active_mtu;
  uint32_t pd_count;
  uint32_t ah_count;
  std::vector<QpSnapshot> qps;
  std::vector<CqSnapshot> cqs;
  std::vector<MrSnapshot> mrs;
  CounterList counters;  // frames and bytes in and out, drops by reason, retries, NAKs ...
};

struct FabricSnapshot {
  std::vector<DeviceSnapshot> devices;
};

}  // namespace rocemu::engine
