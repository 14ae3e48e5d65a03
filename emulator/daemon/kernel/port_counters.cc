#include "emulator/daemon/kernel/port_counters.h"

#include <array>

namespace rocemu::daemon {
namespace {

using engine::Counter;

/// The unit of the data counters in the specification, in bytes
constexpr uint64_t kWord = 4;

/// The names of PFC counters in `ethtool -S` with mlx5 (mlx5/core/en_stats.c)
constexpr std::array<std::string_view, 8> kReceivedPauses = {
    "rx_prio0_pause", "rx_prio1_pause", "rx_prio2_pause", "rx_prio3_pause",
    "rx_prio4_pause", "rx_prio5_pause", "rx_prio6_pause", "rx_prio7_pause"};
constexpr std::array<std::string_view, 8> kSentPauses = {
    "tx_prio0_pause", "tx_prio1_pause", "tx_prio2_pause", "tx_prio3_pause",
    "tx_prio4_pause", "tx_prio5_pause", "tx_prio6_pause", "tx_prio7_pause"};

}  // namespace

std::vector<NamedCounter> port_counters(const engine::Counters& counters) {
  const auto get = [&](Counter counter) { return counters.get(counter); };
  const uint64_t multicast_out = get(Counter::kMulticastFramesOut);
  const uint64_t multicast_in = get(Counter::kMulticastFramesIn);
  return {
      {"VL15_dropped", 0},
      {"excessive_buffer_overrun_errors", 0},
      {"link_downed", get(Counter::kLinkDowns)},
      {"link_error_recovery", 0},
      {"local_link_integrity_errors", 0},
      {"multicast_rcv_packets", multicast_in},
      {"multicast_xmit_packets", multicast_out},
      {"port_rcv_constraint_errors", 0},
      {"port_rcv_data", get(Counter::kBytesIn) / kWord},
      {"port_rcv_errors", get(Counter::kDroppedMalformed) + get(Counter::kDroppedBadIcrc)},
      {"port_rcv_packets", get(Counter::kFramesIn)},
      {"port_rcv_remote_physical_errors", 0},
      {"port_rcv_switch_relay_errors", 0},
      {"port_xmit_constraint_errors", 0},
      {"port_xmit_data", get(Counter::kBytesOut) / kWord},
      {"port_xmit_discards", get(Counter::kDroppedPortDown)},
      {"port_xmit_packets", get(Counter::kFramesOut)},
      {"port_xmit_wait", 0},
      {"symbol_error", 0},
      {"unicast_rcv_packets", get(Counter::kFramesIn) - multicast_in},
      {"unicast_xmit_packets", get(Counter::kFramesOut) - multicast_out},
  };
}

std::vector<NamedCounter> hardware_counters(const engine::Counters& counters,
                                            const std::optional<engine::PauseCounters>& pauses) {
  const auto get = [&](Counter counter) { return counters.get(counter); };
  std::vector<NamedCounter> all = {
      // This name is common to rxe and mlx5.
      {"duplicate_request", get(Counter::kDuplicateRequests)},
      // The following names are those of rxe (rxe_hw_counters.c).
      {"sent_pkts", get(Counter::kFramesOut)},
      {"rcvd_pkts", get(Counter::kFramesIn)},
      {"out_of_seq_request", get(Counter::kOutOfSequence)},
      {"rcvd_rnr_err", get(Counter::kRnrNaksReceived)},
      {"send_rnr_err", get(Counter::kRnrNaksSent)},
      {"rcvd_seq_err", get(Counter::kSequenceNaksReceived)},
      {"retry_exceeded_err", get(Counter::kRetriesExceeded)},
      {"retry_rnr_exceeded_err", get(Counter::kRnrRetriesExceeded)},
      {"completer_retry_err", get(Counter::kAckTimeouts) + get(Counter::kSequenceNaksReceived)},
      {"link_downed", get(Counter::kLinkDowns)},
      // The following names are those of mlx5 (mlx5/counters.c).
      {"rx_write_requests", get(Counter::kWriteRequests)},
      {"rx_read_requests", get(Counter::kReadRequests)},
      {"rx_atomic_requests", get(Counter::kAtomicRequests)},
      {"out_of_buffer", get(Counter::kRnrNaksSent) + get(Counter::kDroppedNoReceive)},
      {"out_of_sequence", get(Counter::kOutOfSequence)},
      {"rnr_nak_retry_err", get(Counter::kRnrNaksReceived)},
      {"packet_seq_err", get(Counter::kSequenceNaksReceived)},
      {"local_ack_timeout_err", get(Counter::kAckTimeouts)},
      {"rx_icrc_encapsulated", get(Counter::kDroppedBadIcrc)},
      {"np_ecn_marked_roce_packets", get(Counter::kCongestionMarks)},
      {"np_cnp_sent", get(Counter::kCnpsSent)},
      {"rp_cnp_ignored", get(Counter::kCnpsReceived) - get(Counter::kCnpsHandled)},
      {"rp_cnp_handled", get(Counter::kCnpsHandled)},
  };
  for (size_t i = 0; pauses && i < kReceivedPauses.size(); ++i) {
    all.push_back({kReceivedPauses[i], pauses->received[i]});
    all.push_back({kSentPauses[i], pauses->sent[i]});
  }
  return all;
}

}  // namespace rocemu::daemon
