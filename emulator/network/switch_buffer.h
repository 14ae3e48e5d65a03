// Accounts for the bytes in a switch's shared buffer by ingress port, and decides when PFC must
// stop the senders at these ports. A frame counts from the arrival of its last bit until it begins
// to leave.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// The bytes in the buffer that arrived by one ingress port, by priority.
struct IngressAccount {
  std::array<uint64_t, kPriorities> shared{};
  std::array<uint64_t, kPriorities> headroom{};
  uint64_t headroom_limit = 0;  // for each lossless priority
};

enum class Admission : uint8_t { kShared, kHeadroom, kNoHeadroom, kBufferFull };

class SwitchBuffer {
 public:
  /// Sets the limits of the buffer. `reserved` is the total headroom of all ports.
  void configure(const SwitchParameters& parameters, uint8_t lossless, uint64_t reserved) {
    if (parameters.pfc) {
      xoff_ = parameters.pfc->xoff_bytes;
      xon_ = parameters.pfc->xon_bytes;
      lossless_ = lossless;
    }
    shared_limit_ = parameters.buffer_bytes > reserved ? parameters.buffer_bytes - reserved : 0;
  }

  bool is_lossless(uint8_t priority) const { return (lossless_ >> priority & 1) != 0; }
  uint64_t used() const { return shared_used_ + headroom_used_; }

  Admission admit(IngressAccount& account, uint8_t priority, uint32_t bytes) {
    const bool lossless = is_lossless(priority);
    if (shared_used_ + bytes <= shared_limit_ &&
        (!lossless || account.shared[priority] + bytes <= xoff_)) {
      account.shared[priority] += bytes;
      shared_used_ += bytes;
      return Admission::kShared;
    }
    if (!lossless) return Admission::kBufferFull;
    if (account.headroom[priority] + bytes > account.headroom_limit) return Admission::kNoHeadroom;
    account.headroom[priority] += bytes;
    headroom_used_ += bytes;
    return Admission::kHeadroom;
  }

  /// Subtracts a frame that leaves. Frees headroom first, even if another frame had used it, so
  /// that headroom is available for the next pause.
  void release(IngressAccount& account, uint8_t priority, uint32_t bytes) {
    const uint64_t of_headroom =
        account.headroom[priority] < bytes ? account.headroom[priority] : bytes;
    account.headroom[priority] -= of_headroom;
    headroom_used_ -= of_headroom;
    account.shared[priority] -= bytes - of_headroom;
    shared_used_ -= bytes - of_headroom;
  }

  bool has_to_pause(const IngressAccount& account, uint8_t priority) const {
    return is_lossless(priority) &&
           (account.headroom[priority] > 0 || account.shared[priority] >= xoff_);
  }
  bool may_resume(const IngressAccount& account, uint8_t priority) const {
    return account.headroom[priority] == 0 && account.shared[priority] <= xon_;
  }

 private:
  uint64_t xoff_ = 0;
  uint64_t xon_ = 0;
  uint8_t lossless_ = 0;
  uint64_t shared_limit_ = 0;
  uint64_t shared_used_ = 0;
  uint64_t headroom_used_ = 0;
};

}  // namespace rocemu::network
