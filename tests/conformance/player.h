// Plays one end of a captured conversation with our engine. The frames of the other end arrive at
// their times, and the application's actions are done at the places where the captured application
// must have done them.
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/conversation.h"

namespace rocemu::conformance {

/// Facts about the programs that a capture does not show.
struct Setting {
  uint8_t timeout = 14;
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint8_t max_rd_atomic = 16;
  uint32_t unheard_qpn = 0;           // of the end that nobody sends to
  uint32_t qp_access = ~0u;           // all
  uint32_t receive_size = 64 * 1024;  // bytes of each receive buffer
  uint64_t region_end = 0;  // not 0: the region ends so many bytes behind what a request names
  bool bad_rkey = false;    // the R_Keys of the requests name nothing
  /// Frames were lost or reordered outside the captured part of the network, so the retransmissions
  /// and their times cannot be known.
  bool disturbed = false;
  bool udp_port_is_known = true;  // not with rdma_cm, which makes it of TCP ports
};

/// Lines that describe what this end sent, in order: one for each frame.
struct Said {
  std::vector<std::string> requests;
  std::vector<std::string> responses;
};

/// Returns the messages of that end in the capture.
Said said_in_capture(const Conversation& conversation, int end, const Setting& setting);
/// Returns the messages of rocemu's engine in the same situation.
Said said_by_engine(const Conversation& conversation, int end, const Setting& setting);

}  // namespace rocemu::conformance
