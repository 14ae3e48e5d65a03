// An rdma_cm event channel of an engine, with the commands and events that a program with librdmacm
// uses.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/engine/engine.h"
#include "emulator/engine/rdmacm/addresses/socket_addresses.h"
#include "tests/support/array_memory.h"

namespace rocemu::test {

/// Returns the address "127.0.0.1" or "::1" with a port. as_gid() converts either to AF_IB.
inline engine::cm::SocketAddress ip(std::string_view text, uint16_t port = 0) {
  engine::cm::SocketAddress address;
  address.address = *wire::parse_ip_address(text);
  address.family = address.address.is_v4() ? engine::cm::Family::kIpv4 : engine::cm::Family::kIpv6;
  address.port = port;
  return address;
}

/// A fabric with its clock, and the events of all channels that its steps caused.
class CmBench {
 public:
  explicit CmBench(engine::FabricConfig config = engine::default_fabric(2))
      : engine_(std::move(config), memory_) {}

  engine::CmReply step(const engine::Input& input) {
    outputs_.clear();
    engine_.step(now_, input, outputs_);
    engine::CmReply reply = outputs_.cm_reply.value_or(engine::CmReply{EIO, {}});
    collect();
    // Runs the work that a step left undone, but without advancing the time.
    while (engine_.next_deadline() && *engine_.next_deadline() <= now_) {
      outputs_.clear();
      engine_.step(now_, engine::Tick{}, outputs_);
      collect();
    }
    return reply;
  }
  void run_for(engine::Duration time) {
    const engine::Instant end = now_ + time;
    while (engine_.next_deadline() && *engine_.next_deadline() <= end) {
      now_ = std::max(now_, *engine_.next_deadline());
      step(engine::Tick{});
    }
    now_ = end;
  }

  std::deque<engine::CmEvent> events;

 private:
  void collect() {
    for (const engine::Output& output : outputs_.list) {
      if (const auto* event = std::get_if<engine::CmEvent>(&output)) events.push_back(*event);
    }
  }

  ArrayMemory memory_;
  engine::Engine engine_;
  engine::Outputs outputs_;
  engine::Instant now_{};
};

class EventChannel {
 public:
  using Command = abi::ucma::Command;
  using Event = abi::ucma::EventResponse;

  EventChannel(CmBench& bench, uint32_t number) : bench_(bench), channel_{number} {
    bench_.step(engine::OpenCmChannel{channel_});
  }
  void close() { bench_.step(engine::CloseCmChannel{channel_}); }
  engine::CmChannelId number() const { return channel_; }

  engine::CmReply command(Command command, std::span<const std::byte> in,
                          uint32_t out_size = abi::ucma::kMaxResponse) {
    return bench_.step(engine::CmCommand{channel_, command, in, out_size});
  }
  template <class In>
  int ask(Command number, const In& in) {
    return command(number, std::as_bytes(std::span(&in, 1))).error;
  }
  /// Executes a command. Returns its errno and its response, which must be complete.
  template <class Out, class In>
  std::pair<int, Out> ask_for(Command number, const In& in) {
    const engine::CmReply reply = command(number, std::as_bytes(std::span(&in, 1)));
    Out out{};
    if (!reply.response.empty()) {
      std::memcpy(&out, reply.response.data(), std::min(sizeof out, reply.response.size()));
    }
    return {reply.error, out};
  }

  uint32_t create_id(uint64_t uid, abi::ucma::PortSpace space = abi::ucma::PortSpace::kTcp,
                     abi::QpType type = abi::QpType::kRc) {
    abi::ucma::CreateId in{};
    in.uid = uid;
    in.port_space = space;
    in.qp_type = static_cast<uint8_t>(type);
    return ask_for<abi::ucma::CreateIdResponse>(Command::kCreateId, in).second.id;
  }
  int destroy_id(uint32_t id) { return ask(Command::kDestroyId, abi::ucma::DestroyId{0, id, 0}); }
  int bind(uint32_t id, const engine::cm::SocketAddress& address) {
    abi::ucma::Bind in{};
    in.id = id;
    in.address_size = static_cast<uint16_t>(address.size());
    engine::cm::emit(address, in.address.bytes);
    return ask(Command::kBind, in);
  }
  int resolve(uint32_t id, const engine::cm::SocketAddress& to, uint32_t timeout_ms = 2000) {
    abi::ucma::ResolveAddr in{};
    in.id = id;
    in.timeout_ms = timeout_ms;
    in.destination_size = static_cast<uint16_t>(to.size());
    engine::cm::emit(to, in.destination.bytes);
    return ask(Command::kResolveAddr, in);
  }
  int resolve_route(uint32_t id) {
    return ask(Command::kResolveRoute, abi::ucma::ResolveRoute{id, 2000});
  }
  int listen(uint32_t id, uint32_t backlog = 8) {
    return ask(Command::kListen, abi::ucma::Listen{id, backlog});
  }
  int connect(uint32_t id, const abi::ucma::ConnParam& param) {
    abi::ucma::Connect in{};
    in.id = id;
    in.param = param;
    in.param.valid = 1;
    return ask(Command::kConnect, in);
  }
  int accept(uint32_t id, uint64_t uid, const abi::ucma::ConnParam& param) {
    abi::ucma::Accept in{};
    in.id = id;
    in.uid = uid;
    in.param = param;
    in.param.valid = 1;
    return ask(Command::kAccept, in);
  }
  /// After a CONNECT_RESPONSE.
  int establish(uint32_t id) {
    abi::ucma::Accept in{};
    in.id = id;
    return ask(Command::kAccept, in);
  }
  abi::ucma::QueryAddrResponse addresses(uint32_t id) {
    return ask_for<abi::ucma::QueryAddrResponse>(
               Command::kQuery, abi::ucma::Query{0, id, abi::ucma::QueryKind::kAddr})
        .second;
  }
  engine::cm::SocketAddress source(uint32_t id) {
    return engine::cm::parse_socket_address(addresses(id).source.bytes)
        .value_or(engine::cm::SocketAddress{});
  }
  engine::cm::SocketAddress destination(uint32_t id) {
    return engine::cm::parse_socket_address(addresses(id).destination.bytes)
        .value_or(engine::cm::SocketAddress{});
  }

  /// Returns the oldest event of this channel, or an event with the ID 0 if there is none. A
  /// connect request that was returned no longer counts for the listener's backlog.
  Event next_event() {
    const Event event = take_event();
    if (event.event == abi::ucma::EventType::kConnectRequest && event.id != 0) {
      ask(Command::kGetEvent, abi::ucma::RequestRead{event.id});
    }
    return event;
  }

 private:
  Event take_event() {
    for (auto at = bench_.events.begin(); at != bench_.events.end(); ++at) {
      if (at->channel != channel_) continue;
      const Event event = *at->event;
      bench_.events.erase(at);
      return event;
    }
    return Event{};
  }

  CmBench& bench_;
  engine::CmChannelId channel_;
};

}  // namespace rocemu::test
