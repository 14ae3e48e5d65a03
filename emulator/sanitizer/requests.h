// The work requests that were posted to one queue, until the program gets their completions
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/abi/rings.h"
#include "emulator/sanitizer/report.h"

namespace rocemu::sanitizer {

/// A range of bytes in the process. If the address is 0, the bytes are not mapped in the process,
/// such as device memory.
struct MemoryRange {
  uint64_t address, length;
};

struct Request {
  uint64_t number = 0;  // counted from 1 in its queue
  uint64_t wr_id = 0;
  uint32_t opcode = 0;  // for a send: abi::WrOpcode
  uint32_t address_handle = 0;
  uint32_t immediate = 0;
  uint64_t remote_address = 0;
  bool is_signaled = true;
  bool is_inline = false;
  bool is_fenced = false;
  bool is_finished = false;  // for an SRQ, whose requests finish in any order
  std::vector<abi::Sge> sges;
  CallSite posted;
  std::optional<uint64_t> checksum;  // of the bytes, when it was posted
  /// The bytes that belong to the NIC until the completion. If the program has a compiler's
  /// sanitizer, the list also contains the address of `completion_point`, which represents the
  /// completion.
  std::vector<MemoryRange> memory;
  std::unique_ptr<uint64_t> completion_point;
};

/// The unfinished requests, in a ring that grows up to the queue's capacity. Its entries are
/// reused, so that after some time nothing is allocated any more.
class Requests {
 public:
  uint64_t posted() const { return posted_; }      // requests ever posted
  uint64_t finished() const { return finished_; }  // all up to this number
  bool empty() const { return posted_ == finished_; }
  size_t size() const { return static_cast<size_t>(posted_ - finished_); }

  /// Adds an entry for a request. The entry still has the values of an earlier request, which the
  /// caller must replace.
  Request& push() {
    if (size() == ring_.size()) grow();
    Request& request = at(++posted_);
    request.number = posted_;
    request.is_finished = false;
    return request;
  }
  /// Returns the request with that number, which must be from finished() + 1 to posted().
  Request& at(uint64_t number) { return ring_[number & (ring_.size() - 1)]; }
  const Request& at(uint64_t number) const { return ring_[number & (ring_.size() - 1)]; }

  void finish_up_to(uint64_t number) {
    if (number > finished_ && number <= posted_) finished_ = number;
  }
  /// Continues with the next number after `number`, as if all requests up to `number` were
  /// finished.
  void begin_at(uint64_t number) { posted_ = finished_ = number; }
  void finish_all() { finished_ = posted_; }
  /// Removes the requests after `number`, because they were not posted after all.
  void take_back(uint64_t number) {
    if (number >= finished_ && number < posted_) posted_ = number;
  }

  /// Returns the oldest unfinished request with that wr_id; null if there is none.
  Request* find(uint64_t wr_id) {
    for (uint64_t number = finished_ + 1; number <= posted_; ++number) {
      Request& request = at(number);
      if (!request.is_finished && request.wr_id == wr_id) return &request;
    }
    return nullptr;
  }
  /// Finishes and returns the oldest unfinished request with that wr_id; returns null if there is
  /// none.
  const Request* finish_one(uint64_t wr_id) {
    Request* const found = find(wr_id);
    if (found != nullptr) found->is_finished = true;
    while (!empty() && at(finished_ + 1).is_finished) ++finished_;
    return found;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (uint64_t number = finished_ + 1; number <= posted_; ++number) {
      if (!at(number).is_finished) visit(at(number));
    }
  }

 private:
  void grow() {
    constexpr size_t kFirst = 16;
    std::vector<Request> larger(ring_.empty() ? kFirst : 2 * ring_.size());
    for (uint64_t number = finished_ + 1; number <= posted_; ++number)
      larger[number & (larger.size() - 1)] = std::move(at(number));
    ring_ = std::move(larger);
  }

  std::vector<Request> ring_;  // its size is a power of two, or 0
  uint64_t posted_ = 0, finished_ = 0;
};

}  // namespace rocemu::sanitizer
