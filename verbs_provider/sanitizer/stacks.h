// The call stacks of the program's calls. Each is stored once and referred to by its number.
//
// Unwinding takes microseconds, and a program posts millions of times from the same few places.
// Each thread therefore keeps its recent stacks with the addresses at which their return addresses
// were stored. If those still contain the same return addresses, the stack is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace rocemu::sanitizer {

/// A frame of a stack, in the form that tools for debug information need
struct Frame {
  const std::string* file;  // of the program or library
  uint64_t address;         // in the file
  std::string symbol;       // of the dynamic symbol table; may be empty
  uint64_t offset;          // from that symbol
};

/// The calling thread's stack, captured without allocation or a lock
struct RawStack {
  static constexpr size_t kMaxFrames = 32;
  uintptr_t addresses[kMaxFrames];
  size_t count = 0;

  void take();
};

class Stacks {
 public:
  /// Returns the number of the calling thread's stack, or 0 if there are too many. The caller must
  /// guard all functions of this class.
  uint32_t current();

  uint32_t number_of(const RawStack& stack) { return number_of(stack.addresses, stack.count); }
  const std::vector<Frame>& frames(uint32_t number) const { return stacks_[number - 1]; }
  /// Returns the return addresses of the frames, innermost first.
  const std::vector<uintptr_t>& addresses(uint32_t number) const { return addresses_[number - 1]; }

 private:
  uint32_t number_of(const uintptr_t* addresses, size_t count);
  Frame describe(uintptr_t address);

  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::deque<std::vector<uintptr_t>> addresses_;  // by number - 1
  std::deque<std::vector<Frame>> stacks_;
  std::unordered_map<std::string, std::string> files_;
};

}  // namespace rocemu::sanitizer
