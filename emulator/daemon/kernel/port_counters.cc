#include "emulator/daemon/kernel/port_counters.h"

#include <initializer_list>
#include <map>

namespace rocemu::daemon {
namespace {

class Values {
 public:
  explicit Values(const std::vector<std::pair<std::string_view, uint64_t>>& counters)
      : values_(counters.begin(), counters.end()) {}

  uint64_t sum(std::initializer_list<std::string_view> names) const {
    uint64_t sum = 0;
    for (const std::string_view name : names) {
      const auto found = values_.find(name);
      if (found != values_.end()) sum += found->second;
    }
    return sum;
  }
  uint64_t operator[](std::string_view name) const { return sum({name}); }

 private:
  std::map<std::string_view, uint64_t> values_;
};

/// In which the specification counts data.
constexpr uint64_t kWord = 4;

}  // namespace

std::vector<NamedCounter> port_counters(
    const std::vector<std::pair<std::string_view, uint64_t>>& counters) {
  const Values values(counters);
  const uint64_t multicast_out = values["multicast_frames_out"];
  const uint64_t multicast_in = values["multicast_frames_in"];
  return {
      {"VL15_dropped", 0},
      {"excessive_buffer_overrun_errors", 0},
      {"link_downed", values["link_downs"]},
      {"link_error_recovery", 0},
      {"local_link_integrity_errors", 0},
      {"multicast_rcv_packets", multicast_in},
      {"multicast_xmit_packets", multicast_out},
      {"port_rcv_constraint_errors", 0},
      {"port_rcv_data", values["bytes_in"] / kWord},
      {"port_rcv_errors", values.sum({"dropped_malformed", "dropped_bad_icrc"})},
      {"port_rcv_packets", values["frames_in"]},
      {"port_rcv_remote_physical_errors", 0},
      {"port_rcv_switch_relay_errors", 0},
      {"port_xmit_constraint_errors", 0},
      {"port_xmit_data", values["bytes_out"] / kWord},
      {"port_xmit_discards", values["dropped_port_down"]},
      {"port_xmit_packets", values["frames_out"]},
      {"port_xmit_wait", 0},
      {"symbol_error", 0},
      {"unicast_rcv_packets", values["frames_in"] - multicast_in},
      {"unicast_xmit_packets", values["frames_out"] - multicast_out},
  };
}

std::vector<NamedCounter> hardware_counters(
    const std::vector<std::pair<std::string_view, uint64_t>>& counters) {
  const Values values(counters);
  return {
      // Of both.
      {"duplicate_request", values["duplicate_requests"]},
      // rxe's (rxe_hw_counters.c).
      {"sent_pkts", values["frames_out"]},
      {"rcvd_pkts", values["frames_in"]},
      {"out_of_seq_request", values["out_of_sequence"]},
      {"rcvd_rnr_err", values["rnr_naks_received"]},
      {"send_rnr_err", values["rnr_naks_sent"]},
      {"rcvd_seq_err", values["sequence_naks_received"]},
      {"retry_exceeded_err", values["retries_exceeded"]},
      {"retry_rnr_exceeded_err", values["rnr_retries_exceeded"]},
      {"completer_retry_err", values.sum({"ack_timeouts", "sequence_naks_received"})},
      {"link_downed", values["link_downs"]},
      // mlx5's (mlx5/counters.c).
      {"rx_write_requests", values["write_requests"]},
      {"rx_read_requests", values["read_requests"]},
      {"rx_atomic_requests", values["atomic_requests"]},
      {"out_of_buffer", values.sum({"rnr_naks_sent", "dropped_no_receive"})},
      {"out_of_sequence", values["out_of_sequence"]},
      {"rnr_nak_retry_err", values["rnr_naks_received"]},
      {"packet_seq_err", values["sequence_naks_received"]},
      {"local_ack_timeout_err", values["ack_timeouts"]},
      {"rx_icrc_encapsulated", values["dropped_bad_icrc"]},
      {"np_ecn_marked_roce_packets", values["congestion_marks"]},
      {"np_cnp_sent", values["cnps_sent"]},
      {"rp_cnp_ignored", values["cnps_received"]},  // no device slows down
      {"rp_cnp_handled", 0},
  };
}

}  // namespace rocemu::daemon
