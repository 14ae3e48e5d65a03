// A device's way out: frames wait in a queue and leave as datagrams, many in one where they are for
// the same peer and of one size (UDP_SEGMENT), and several datagrams in one system call.
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

  /// Its first bytes say where to. The newest frame is dropped if there is no more room.
  void add(engine::Frame frame);

  /// Acknowledgements alone wait for a moment: the program that got the message may reply, and both
  /// leave in one system call (IBTA vol 1, 9.7.5.1.2 lets a responder choose when it
  /// acknowledges). Not where that was in vain of late.
  bool holds_back(engine::Instant now);
  /// Sends what waits. If the system takes no more now, returns the socket to wait for; else -1.
  int flush();
  /// So much waits that it is time for flush_full().
  bool has_many() const {
    const size_t waiting = queue_.size() - next_;
    return waiting != 0 && waiting % kMany == 0;
  }
  /// Sends what no later frame can go with, while it is in the processor's caches. Returns what
  /// flush() does.
  int flush_full();

  /// So much waits that nothing should be added for now: the wire is busy.
  bool is_congested() const;
  bool is_empty() const { return next_ == queue_.size(); }
  /// Before the engine, whose frames they are.
  void clear();

  /// Reads the errors that came back for what was sent; a pending one would fail the next send.
  void read_errors(int socket);

 private:
  static constexpr size_t kMany = 16;
  /// Datagrams of one system call.
  static constexpr size_t kMaxBundles = 8;

  /// Frames in a row that leave as one datagram.
  struct Bundle {
    size_t first;
    size_t count;
  };

  void put_acknowledgements_last();
  UdpSendSocket* socket_of(const engine::Frame& frame);
  size_t bundle_size(size_t first) const;
  /// More frames are there than leave with the next one.
  bool has_full() const { return next_ + bundle_size(next_) < queue_.size(); }
  size_t find_bundles(bool only_full, std::span<Bundle, kMaxBundles> bundles) const;
  int send_next(bool only_full);
  int send(UdpSendSocket& socket, std::span<const Bundle> bundles);
  void done_with(size_t count);
  void forget_sent();
  void count_failure(int error, size_t frames);

  UdpSockets& sockets_;
  UdpCounters& counters_;
  bool can_segment_ = true;
  std::vector<engine::Frame> queue_;  // those before next_ are gone
  size_t next_ = 0;
  std::optional<engine::Instant> held_since_;
  uint32_t held_in_vain_ = 0;  // in a row
};

}  // namespace rocemu::daemon
