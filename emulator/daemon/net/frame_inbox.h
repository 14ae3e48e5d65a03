// Frames that other threads have for this one, where the shards of a fabric (engine/base/shard.h)
// run side by side. Each frame is copied once, into a slot: the engines' own buffers stay with
// their threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "emulator/daemon/base/waker.h"
#include "emulator/engine/events.h"

namespace rocemu::daemon {

class FrameInbox {
 public:
  /// `owner` wakes the thread whose inbox it is, and must outlive it.
  explicit FrameInbox(Waker& owner) : owner_(owner) {}

  // ---- By any thread ----
  /// False if there is no room, until the owner has taken some.
  [[nodiscard]] bool put(const engine::ForwardFrame& frame);
  /// Of the frames that were put, ever, and of those that its owner is done with.
  size_t frames_put() const { return put_.load(std::memory_order_acquire); }
  size_t frames_done() const { return done_.load(std::memory_order_acquire); }
  /// After put(), once for many of them: wakes the owner if it sleeps.
  void notify();

  // ---- By its owner ----
  /// What has come, in the order in which each other thread has put it; some of it if it is much.
  /// Valid until done().
  std::span<const engine::ForwardedFrame> take();
  void done();
  bool is_empty() const;
  /// False if something has come: then it is not to sleep.
  [[nodiscard]] bool fall_asleep();
  void stay_awake() { asleep_.store(false, std::memory_order_relaxed); }

 private:
  static constexpr size_t kSlots = 512;
  static constexpr size_t kMaxTaken = 64;

  struct Slot {
    engine::DeviceIndex to;
    bool check_icrc;
    bool parsed;
    size_t size;
    wire::Packet packet;
    alignas(64) std::array<uint8_t, engine::Frame::kCapacity> bytes;
  };

  Waker& owner_;
  std::unique_ptr<Slot[]> slots_;  // 2 MiB, with the first frame
  std::vector<engine::ForwardedFrame> taken_;
  std::mutex putting_;
  // Both count frames, ever.
  alignas(64) std::atomic<size_t> put_{0};
  alignas(64) std::atomic<size_t> done_{0};
  alignas(64) std::atomic<bool> asleep_{false};
};

}  // namespace rocemu::daemon
