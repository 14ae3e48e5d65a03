// Scripts for the connection manager, in the style of script.h. Device 0 of a fabric is under test.
// The script makes the messages of a peer outside of the fabric.
//
//   CmScript s;
//   s.at(0ms).app_connects().expect_sent({s.our_req()});
//   s.at(1ms).wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
//   s.at(2ms).app_is_ready().expect_sent({s.our_rtu()});
//
// The script must expect every message and event, at its time and in their order.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "emulator/engine/fabric.h"
#include "tests/support/array_memory.h"
#include "wire/cm/cm_messages.h"

namespace rocemu::engine::cm {
void PrintTo(EventKind kind, std::ostream* out);
}  // namespace rocemu::engine::cm

namespace rocemu::test {

using namespace std::chrono_literals;
using engine::cm::EventKind;

/// The script's connections have the response timeout with code 20 and packet lifetimes with code
/// 18. The timeout is the response timeout and two packet lifetimes: 6.4 s.
inline constexpr engine::Duration kCmTimeout{(int64_t{4096} << 20) + 2 * (int64_t{4096} << 18)};
/// The time in timewait is the local ACK timeout with code 19: 2.1 s.
inline constexpr engine::Duration kCmTimewait{int64_t{4096} << 19};

class CmScript {
 public:
  static constexpr uint64_t kService = 0x0000000001061c06;
  static constexpr engine::cm::Context kContext = 501;          // the context of connections
  static constexpr engine::cm::Context kListenerContext = 601;  // the context of the listener
  static constexpr uint32_t kOurQpn = 0x11;
  static constexpr uint32_t kOurPsn = 0x345678;
  static constexpr uint32_t kPeerId = 0x77000001;
  static constexpr uint32_t kPeerQpn = 0xabc;
  static constexpr uint32_t kPeerPsn = 0xcdba7a;
  static constexpr uint64_t kPeerGuid = 0x1122334455667788;
  static constexpr uint64_t kPeerTransaction = 0x0000000900000042;

  explicit CmScript(uint64_t seed = 1, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());
  CmScript(const CmScript&) = delete;
  CmScript& operator=(const CmScript&) = delete;
  ~CmScript();

  /// Advances to that time after the start, stopping at each deadline.
  CmScript& at(engine::Duration time, int line = __builtin_LINE());

  CmScript& app_listens(int line = __builtin_LINE());
  CmScript& app_connects(int line = __builtin_LINE()) { return app_connects(request(), line); }
  CmScript& app_connects(const engine::cm::Connect& connect, int line = __builtin_LINE());
  CmScript& app_accepts(int line = __builtin_LINE());
  CmScript& app_is_ready(int line = __builtin_LINE());
  CmScript& app_rejects(int line = __builtin_LINE());
  CmScript& app_delays(uint8_t code, int line = __builtin_LINE());
  CmScript& app_disconnects(int line = __builtin_LINE());
  CmScript& app_answers_disconnect(int line = __builtin_LINE());
  CmScript& app_destroys(int line = __builtin_LINE());
  /// Calls the function, which must check its result itself.
  CmScript& app(const std::function<void(engine::cm::ConnectionManager&)>& call,
                int line = __builtin_LINE());

  CmScript& wire_delivers(const wire::CmMessage& message, int line = __builtin_LINE());
  CmScript& wire_delivers(const wire::CmMad& mad, int line = __builtin_LINE());
  CmScript& wire_delivers_packet(const wire::Packet& packet, int line = __builtin_LINE());

  /// Expects that exactly these messages were sent to the peer since the last expectation. If MADs
  /// are given, also checks their transaction IDs.
  CmScript& expect_sent(std::initializer_list<wire::CmMessage> messages,
                        int line = __builtin_LINE());
  CmScript& expect_sent_mads(const std::vector<wire::CmMad>& mads, int line = __builtin_LINE());
  CmScript& expect_told(std::initializer_list<EventKind> kinds, int line = __builtin_LINE());
  CmScript& expect_silence(int line = __builtin_LINE()) {
    return expect_sent({}, line).expect_told({}, line);
  }
  CmScript& expect_counter(engine::Counter which, uint64_t value, int line = __builtin_LINE());

  // ---- Messages that are sent and delivered ----
  engine::cm::Connect request() const;  // the request that app_connects() makes by default
  engine::cm::Accept acceptance() const;
  wire::CmReq our_req() const;
  wire::CmRep our_rep() const;
  wire::CmRtu our_rtu() const;
  wire::CmMra our_mra(wire::CmMraed message, uint8_t code) const;
  wire::CmRej our_rej(wire::CmRejectReason reason, wire::CmRejected message) const;
  wire::CmRej our_timeout(uint32_t remote_id) const;
  wire::CmDreq our_dreq() const;
  wire::CmDrep our_drep() const;
  wire::CmReq peer_req() const;
  wire::CmRep peer_rep() const;
  wire::CmRtu peer_rtu() const;
  wire::CmMra peer_mra(wire::CmMraed message, uint8_t code) const;
  wire::CmRej peer_rej(wire::CmRejectReason reason, wire::CmRejected message) const;
  wire::CmDreq peer_dreq() const;
  wire::CmDrep peer_drep() const;
  /// Returns a packet from the peer's QP 1 to our QP 1.
  wire::Packet packet_with(std::span<const uint8_t> payload) const;

  // ---- Shortcuts to a state ----
  CmScript& reach_established_active(int line = __builtin_LINE());
  CmScript& reach_established_passive(int line = __builtin_LINE());

  /// Returns the connection of the latest app_connects() or REQ.
  engine::cm::ConnectionId id() const { return id_; }
  const engine::cm::Event& last_event() const { return last_event_; }
  const wire::Packet& last_packet() const { return last_packet_; }
  engine::cm::ConnectionManager& manager() { return fabric_.connections; }
  engine::Fabric& fabric() { return fabric_; }
  const wire::IpAddress& device_ip() const { return device_ip_; }
  const wire::IpAddress& peer_ip() const { return peer_ip_; }

 private:
  struct Sent {
    wire::CmMad mad;
    engine::Instant at;
  };

  CmScript& step(const std::function<void()>& input, int line);
  void collect(int line);
  void check_silent(const char* when, int line);

  const char* file_;
  int line_;
  wire::IpAddress device_ip_, peer_ip_;
  ArrayMemory memory_;
  engine::Fabric fabric_;
  engine::Outputs outputs_;
  engine::Instant now_{};
  std::vector<Sent> sent_;
  std::vector<engine::cm::Event> told_;
  engine::cm::Event last_event_;
  std::vector<uint8_t> last_frame_;
  wire::Packet last_packet_;
  engine::cm::ConnectionId id_;
  uint32_t next_psn_ = 0;
};

}  // namespace rocemu::test
