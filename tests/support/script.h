// Scripts in the style of packetdrill. One device is under test, and the script makes the frames of
// a peer outside of the fabric. Each line is an event, with its time:
//
//   Script s;
//   s.at(0ms).app_posts_send(7).expect({send_only(psn(0))});
//   s.at(ack_timeout(14)).expect({send_only(psn(0))});
//   s.at(80ms).wire_delivers(ack(psn(0))).expect({completion(7)});
//
// The script must expect every output, at its time and in their order: an output that a line does
// not expect fails the next at(), or the end of the script. Failures name the script's line.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"

namespace rocemu::test {

struct ScriptOptions : EndpointOptions {
  abi::QpState state = abi::QpState::kRts;
  bool ipv6 = false;
  bool trace_frames = false;
  bool outside = false;  // DeviceConfig::outside and source_ports
  uint32_t ack_coalescing = 1;
  std::vector<uint16_t> source_ports = {};
  BenchObserver* observer = nullptr;
};

/// Returns the ACK timeout of this code: IBTA vol 1, 9.7.6.1.3.
constexpr engine::Duration ack_timeout(uint8_t code) {
  return engine::Duration(int64_t{4096} << code);
}

class Script {
 public:
  static constexpr uint32_t kPeerQpn = 0x000abc;

  explicit Script(const ScriptOptions& options = {}, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script();

  /// Advances to that time after the start.
  Script& at(engine::Duration time, int line = __builtin_LINE());

  /// Posts a signaled SEND of `length` bytes from the start of the send buffer.
  Script& app_posts_send(uint64_t wr_id, uint32_t length = 8, int line = __builtin_LINE());
  Script& app_posts(const SendWr& wr, int line = __builtin_LINE());
  /// Posts a receive of `length` bytes at `offset` in the receive buffer.
  Script& app_posts_recv(uint64_t wr_id, uint32_t length = 4096, uint64_t offset = 0,
                         int line = __builtin_LINE());
  Script& app_posts_recv_list(const RecvWr& wr, int line = __builtin_LINE());
  /// Changes the state to one that needs no attributes: ERR, RESET, SQD, or back to RTS.
  Script& app_sets_state(abi::QpState state, int line = __builtin_LINE());
  Script& app_modifies(const abi::QpAttr& attr, uint32_t mask, int line = __builtin_LINE());
  /// Brings the QP through INIT and RTR to that state, as the constructor does.
  Script& app_connects(abi::QpState to, int line = __builtin_LINE());

  /// Delivers a frame of the peer to the device. Addresses and QP numbers are those of the
  /// connection, unless the packet sets others.
  Script& wire_delivers(const PacketSpec& spec, int line = __builtin_LINE());
  /// Delivers several frames of the peer that arrive together.
  Script& wire_delivers_burst(const std::vector<PacketSpec>& specs, int line = __builtin_LINE());
  Script& wire_delivers_bytes(std::span<const uint8_t> bytes, int line = __builtin_LINE());

  /// Expects exactly these outputs since the last expectation, in this order, all at the present
  /// time.
  Script& expect(std::initializer_list<Expected> outputs, int line = __builtin_LINE()) {
    return expect_list(std::vector<Expected>(outputs), line);
  }
  Script& expect_list(const std::vector<Expected>& outputs, int line = __builtin_LINE());
  Script& expect_silence(int line = __builtin_LINE()) { return expect_list({}, line); }
  Script& expect_state(abi::QpState state, int line = __builtin_LINE());
  Script& expect_counter(engine::Counter which, uint64_t value, int line = __builtin_LINE());
  Script& expect_received(const std::vector<uint8_t>& bytes, uint64_t offset = 0,
                          int line = __builtin_LINE());

  /// Returns the frame that wire_delivers would deliver.
  std::vector<uint8_t> frame(const PacketSpec& spec) const;
  wire::Packet addressed(const PacketSpec& spec) const;

  Bench& bench() { return bench_; }
  Endpoint& app() { return app_; }
  Client& client() { return app_.client; }
  uint32_t qpn() const { return app_.qpn; }
  const wire::IpAddress& device_ip() const { return device_ip_; }
  const wire::IpAddress& peer_ip() const { return peer_ip_; }

 private:
  void fail(int line, const std::string& text) const;
  void check_silent(int line, const char* when);
  /// Checks properties that every frame of the device must have, whatever the script expects.
  void check_frame(const engine::Frame& frame, int line) const;

  const char* file_;
  int line_;  // the script's line with the latest statement
  ScriptOptions options_;
  wire::IpAddress device_ip_, peer_ip_;
  Bench bench_;
  Endpoint app_;
};

}  // namespace rocemu::test
