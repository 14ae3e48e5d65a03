// The state of a queue pair. Its behavior is in requester.h, completer.h and responder.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/engine/base/frame_marks.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"
#include "emulator/engine/base/rate_controller.h"
#include "emulator/engine/base/timers.h"
#include "emulator/engine/base/work_ring.h"
#include "emulator/engine/objects/memory_table.h"
#include "emulator/engine/objects/shared_receive_queue.h"
#include "emulator/engine/protocol/nak_codes.h"
#include "emulator/engine/protocol/opcode_traits.h"
#include "wire/eth_headers.h"
#include "wire/ethernet.h"
#include "wire/ip_address.h"
#include "wire/opcode.h"
#include "wire/psn.h"

namespace rocemu::engine {

/// A resolved address vector: the header fields of all frames to the peer
struct Path {
  QpNumber peer;
  wire::MacAddress src_mac, dst_mac;
  wire::IpAddress src_ip, dst_ip;
  uint16_t udp_src_port = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint32_t flow_label = 0;
  std::optional<DeviceIndex> inside;  // the fabric's device with dst_ip, if one has it
};

struct LocalError {
  abi::WcStatus status;
  VendorError vendor;
};

/// The position of a send WQE in the stream of PSNs. It is known when the WQE's first packet has
/// been made.
struct SendState {
  bool started = false;
  bool rules_asked = false;         // the rules were asked whether it must fail
  std::optional<LocalError> fault;  // the answer of the rules
  RequestKind kind = RequestKind::kSend;
  uint32_t length = 0;  // payload bytes of the whole message
  /// The packets [placed_from, placed_to) of a SEND or WRITE have their payload in the responder's
  /// memory (direct_placement.h). If they are sent again, it is not stored again.
  uint32_t placed_from = 0, placed_to = 0;
  wire::Psn first, last;  // for a local WQE, `last` is before `first`
};
struct RecvState {};

/// The windows of a requester: the maximum numbers of packets in flight to a remote peer
/// (TransportContext::is_remote). Over a network, the receiver's buffers are limited, and packets
/// that do not fit are lost. The window is therefore small at first, doubles whenever its packets
/// were acknowledged, and is small again after a loss. After a timeout the window is one packet.
/// Perhaps no packet was lost, but the packets wait at a receiver that is short of processor time.
/// Retransmitting many packets would leave that receiver even less time.
inline constexpr int32_t kFirstWindow = 16;
inline constexpr int32_t kWindowAfterTimeout = 1;
inline constexpr int32_t kLargestWindow = 128;

/// The sending half. The WQEs [head, next) were sent and wait for acknowledgement. WQE `next` is
/// sent next, starting with its packet `next_packet`. Go-back-N moves (next, next_packet) back.
struct SendHalf {
  WorkRing<SendState> queue;
  uint32_t next = 0;
  uint32_t next_packet = 0;
  wire::Psn next_psn;             // of the next WQE to start
  wire::Psn unacked;              // the oldest unacknowledged PSN
  wire::Psn sent_limit;           // one past the newest PSN ever sent
  wire::Psn ack_limit;            // one past the newest PSN sent with AckReq since the last go-back
  int32_t window = kFirstWindow;  // maximum number of packets in flight to a remote peer
  uint32_t responses_outstanding = 0;  // READs and atomics without a response
  /// One past the newest PSN of a READ or atomic whose response is not placed (direct_placement.h)
  wire::Psn unplaced_limit;
  uint32_t placed = 0;  // packets of the READ `next` whose data is placed (direct_placement.h)
  uint8_t retries_left = 0;
  uint8_t rnr_retries_left = 0;
  Duration ack_timer{};  // the latest value
  Duration rnr_timer{};
  Resend resend;  // the reason of the latest go-back
  bool waiting_for_rnr = false;
  bool answer_unplaced = false;     // a response waits for memory: completer::on_memory_ready
  bool loss_noticed = false;        // a missing response was requested again
  bool drained_reported = false;    // IBV_EVENT_SQ_DRAINED was raised in this SQD
  std::optional<LocalError> error;  // of WQE `next`, when all earlier ones are complete
};

/// A response that a responder has yet to send, in the order of the requests (IBTA vol 1, 9.7.5.1)
struct Response {
  enum class Kind : uint8_t { kAcknowledge, kRead, kAtomic, kRefuse };
  Kind kind;
  wire::Psn psn;  // of the next packet
  uint32_t msn = 0;
  uint8_t syndrome = 0;    // kAcknowledge
  uint32_t messages = 0;   // kAcknowledge: the number of messages it covers
  Instant held_until{};    // kAcknowledge: earliest time, with `--adversarial=order`; else 0
  uint64_t value = 0;      // kAtomic: the previous value, in host byte order
  PdId pd{};               // kRead: of the request
  uint64_t address = 0;    // kRead: where the rest begins, as in the request
  uint32_t rkey = 0;       // kRead
  uint32_t left = 0;       // kRead: bytes
  bool begun = false;      // kRead: its first packet was sent
  bool is_repeat = false;  // a response that was sent before
  bool is_placed = false;  // kRead: the data is in the requester's memory (direct_placement.h)
  Verdict verdict{};       // kRefuse
};

/// The receiving half
struct RecvHalf {
  WorkRing<RecvState> queue;
  std::optional<ReceiveWqe> wqe;  // filled by the message in progress
  wire::Psn expected;
  wire::Psn answered;                 // one past the newest acknowledged or answered PSN
  uint32_t msn = 0;                   // messages completed, 24 bits
  bool nak_outstanding = false;       // silent until the expected PSN arrives
  bool refusing = false;              // a final NAK waits: requests are ignored
  bool in_message = false;            // between the first and the last packet of a message
  wire::Operation operation{};        // of that message
  uint64_t received = 0;              // payload bytes of the message so far
  wire::Reth reth;                    // WRITE: of its first packet
  bool established_reported = false;  // IBV_EVENT_COMM_EST was raised
  std::deque<Response> responses;
  /// The responses to the latest max_dest_rd_atomic atomics, for duplicates of these requests.
  std::deque<Response> atomic_answers;
  /// The first PSNs of the latest max_dest_rd_atomic READs, atomics, ATOMIC WRITEs and FLUSHes,
  /// oldest first. A requester has at most that number of such requests outstanding (IBTA vol 1,
  /// 9.7.4.1.5), so it has received the response to every earlier one.
  std::vector<wire::Psn> query_psns;
};

/// The state of congestion control on a simulated network, for the QP as notification point and as
/// reaction point.
struct CongestionState {
  CnpLimiter notifications;
  std::unique_ptr<RateController> rate;  // null before the first CNP
  Pacer pacer;
};

struct QueuePair {
  /// A reference to an XRC target QP, held by a client that opened the QP
  struct Reference {
    ClientId client;
    uint64_t user_handle;
  };

  QueuePair(QpNumber n, ClientId c, DeviceIndex d) : number(n), client(c), device(d) {}

  QpNumber number;
  uint32_t order = 0;  // 1: the device's first
  ClientId client;
  DeviceIndex device;
  abi::QpType type = abi::QpType::kRc;
  abi::QpState state = abi::QpState::kReset;
  PdId pd;
  CqId send_cq, recv_cq;
  /// The SRQ from which receive WQEs are taken, if there is one. An XRC target QP has no fixed SRQ
  /// and PD; its `srq` and `pd` are those of the SRQ that the present request names.
  std::optional<SrqId> srq;
  std::optional<XrcdId> xrcd;                 // XRC target
  std::vector<Reference> further_references;  // XRC target: the QP is destroyed with the last
  uint64_t user_handle = 0;                   // the client's ibv_qp *
  bool sq_sig_all = false;
  bool scheduled = false;         // the QpScheduler has a quantum for it
  uint32_t generation = 1;        // generations since creation; a RESET begins the next
  abi::QpAttr attr{};             // qp_state, cur_qp_state and sq_draining are filled on query
  Path path;                      // UD: of the datagram that is being sent
  uint32_t multicast_groups = 0;  // to which it is attached
  // Values from the device's profile:
  uint32_t late_failures = 0;  // opcodes that complete with LOC_QP_OP_ERR
  uint32_t late_vendor_err = 0;
  uint32_t max_message = static_cast<uint32_t>(kMaxMessage);  // bytes
  Links<QueuePair> of_client;
  Links<QueuePair> of_send_cq, of_recv_cq;
  TimerSet timers;
  Instant next_cnp{};                           // the earliest time of the next CNP (congestion.h)
  std::unique_ptr<CongestionState> congestion;  // null until a packet is marked or a CNP comes
  SendHalf send;
  RecvHalf recv;

  bool is_referenced_by(ClientId other) const {
    return client == other || std::ranges::any_of(further_references, [&](const Reference& it) {
             return it.client == other;
           });
  }
  MemoryUser memory_user() const { return {.pd = pd, .qp = number}; }
  uint32_t mtu() const { return abi::mtu_bytes(static_cast<abi::Mtu>(attr.path_mtu)); }
  bool can_receive() const {
    return state == abi::QpState::kRtr || state == abi::QpState::kRts ||
           state == abi::QpState::kSqd || state == abi::QpState::kSqe;
  }

  /// Resets the QP, except for the values that were set at its creation.
  void reset();
};

}  // namespace rocemu::engine
