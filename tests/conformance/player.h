// Plays one end of a captured conversation with our engine. The frames of the other end arrive at
// their captured times, and the application acts when the captured application must have acted.
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/conversation.h"

namespace rocemu::conformance {

/// Facts about the captured programs that a capture does not show.
struct Setting {
  uint8_t timeout = 14;
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint8_t max_rd_atomic = 16;
  uint32_t unheard_qpn = 0;           // the QPN of an end to which nothing is sent
  uint32_t qp_access = ~0u;           // all
  uint32_t receive_size = 64 * 1024;  // bytes of each receive buffer
  // if not 0, the region ends this number of bytes after the last byte that a request accesses
  uint64_t region_end = 0;
  bool bad_rkey = false;  // the R_Keys of the requests name no region
  /// Frames were lost or reordered outside the captured part of the network, so retransmissions and
  /// their times are not determined.
  bool disturbed = false;
  bool udp_port_is_known = true;  // false with rdma_cm, which derives the UDP port from TCP ports
};

/// Lines that describe the frames that this end sent, in order, one line for each frame.
struct Said {
  std::vector<std::string> requests;
  std::vector<std::string> responses;
};

/// Returns what this end sent in the capture.
Said said_in_capture(const Conversation& conversation, int end, const Setting& setting);
/// Returns what rocemu's engine sends in the place of this end.
Said said_by_engine(const Conversation& conversation, int end, const Setting& setting);

}  // namespace rocemu::conformance
