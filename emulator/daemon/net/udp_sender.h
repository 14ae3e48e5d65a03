// The send path of a device: frames wait in a queue and leave as datagrams. Frames of the same size
// for the same peer share a datagram (UDP_SEGMENT), and several datagrams share a system call.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "emulator/daemon/net/udp_counters.h"
#include "emulator/daemon/net/udp_sockets.h"
#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class UdpSender {
 public:
  UdpSender(UdpSockets& sockets, UdpCounters& counters) : sockets_(sockets), counters_(counters) {}

  /// Adds a frame, which contains its destination in its headers. Drops the frame if there is no
  /// space.
  void add(engine::Frame frame);

  /// Returns whether the waiting frames are held back. If only acknowledgements wait, they are held
  /// back for 1.5 us: the program that got the message may reply, and both leave in one system
  /// call. (IBTA vol 1, 9.7.5.1.2 lets a responder choose when it acknowledges.) They are not held
  /// back if no reply came recently.
  bool holds_back(engine::Instant now);
  /// Sends the waiting frames. Returns -1 or, if the system accepts no more now, the socket for
  /// which the caller must wait.
  int flush();
  /// Returns whether flush_full() should be called, because many frames wait.
  bool has_many() const {
    const size_t waiting = queue_.size() - next_;
    return waiting != 0 && waiting % kMany == 0;
  }
  /// Sends the datagrams to which few or no later frames can be added, while they are in the
  /// processor's caches. Returns the same values as flush().
  int flush_full();

  /// Returns whether too many frames wait, so that no more should be added for now.
  bool is_congested() const;
  bool is_empty() const { return next_ == queue_.size(); }
  /// Drops all frames. Must be called before the engine, which owns the frames, is destroyed.
  void clear();

  /// Reads and counts the errors of sent datagrams. A pending error would make the next send fail.
  void read_errors(int socket);

 private:
  static constexpr size_t kMany = 16;
  /// The maximum number of datagrams in one system call
  static constexpr size_t kMaxBundles = 8;

  /// Consecutive frames that leave as one datagram
  struct Bundle {
    size_t first;
    size_t count;
  };

  void put_acknowledgements_last();
  UdpSendSocket* socket_of(const engine::Frame& frame);
  size_t max_frames(size_t first) const;
  size_t bundle_size(size_t first) const;
  bool is_full(const Bundle& bundle) const;
  bool has_full() const { return is_full({next_, bundle_size(next_)}); }
  size_t find_bundles(bool only_full, std::span<Bundle, kMaxBundles> bundles) const;
  int send_next(bool only_full);
  int send(UdpSendSocket& socket, std::span<const Bundle> bundles);
  void done_with(size_t count);
  void forget_sent();
  void count_failure(int error, size_t frames);

  UdpSockets& sockets_;
  UdpCounters& counters_;
  bool can_segment_ = true;
  std::vector<engine::Frame> queue_;  // those before next_ were sent
  size_t next_ = 0;
  std::optional<engine::Instant> held_since_;
  uint32_t held_in_vain_ = 0;  // in a row
};

}  // namespace rocemu::daemon
