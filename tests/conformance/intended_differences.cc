#include "tests/conformance/intended_differences.h"

namespace rocemu::conformance {

Setting setting_of(const std::string& capture) {
  Setting setting;
  const auto is = [&capture](std::string_view name) { return capture == name; };
  if (capture.starts_with("rc_") && !is("rc_pingpong")) setting.max_rd_atomic = 4;
  if (is("rc_rnr")) setting.min_rnr_timer = 18;
  if (is("rc_rnr_exceeded")) setting.rnr_retry = 2;
  if (is("rc_retry_exceeded")) setting.timeout = 12, setting.retry_cnt = 3;
  if (is("rc_retry_exceeded")) setting.unheard_qpn = 0x2e;
  if (is("uc_send_write")) setting.unheard_qpn = 0x31;
  if (is("rc_loss")) setting.timeout = 12;
  if (is("rc_loss") || is("rc_reorder")) setting.disturbed = true;
  if (is("rc_recv_too_small")) setting.receive_size = 32;
  if (is("rc_qp_no_access")) setting.qp_access = 0;
  if (is("rc_bad_range_read")) setting.region_end = 100;
  if (is("rc_bad_rkey_write") || is("rc_bad_rkey_atomic")) setting.bad_rkey = true;
  if (is("rping") || is("ucmatose") || is("rsocket_rstream") || is("perf_write_cm") ||
      is("udaddy")) {
    setting.udp_port_is_known = false;
    setting.min_rnr_timer = 0;
  }
  return setting;
}

Intended intended_differences(const std::string& capture, int end) {
  const auto is = [&](std::string_view name, int of) { return capture == name && end == of; };
  if (is("rc_recv_too_small", 1)) {
    return {.missing_responses = {{"RC Acknowledge psn 0x100 pkey 0xffff qpn 0x2c syndrome 0x63",
                                   "rxe says remote operational error"}},
            .added_responses = {{"RC Acknowledge psn 0x100 pkey 0xffff qpn 0x2c syndrome 0x61",
                                 "IBTA vol 1, 9.7.5.2.4: a message longer than the receive buffer "
                                 "is an invalid request"}}};
  }
  if (is("rc_rnr", 1)) {
    return {
        .missing_responses = {
            {"RC Acknowledge psn 0x100 pkey 0xffff qpn 0x26 syndrome 0x60",
             "C9-114: one NAK at a time; rxe answers the packet behind the one it was not ready "
             "for with a sequence error as well",
             6, 6}}};
  }
  if (is("ucmatose", 0)) {
    return {.added_responses = {{"RC Acknowledge psn 0x748b8",
                                 "the program had disconnected, which the capture does not show", 3,
                                 3}}};
  }
  if (is("rsocket_rstream", 0)) {
    return {.added_responses = {{"RC Acknowledge psn 0x6ab3e3",
                                 "the program had disconnected, which the capture does not show"}}};
  }
  return {};
}

}  // namespace rocemu::conformance
