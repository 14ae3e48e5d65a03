// Marks memory that the NIC has written as initialized, for MemorySanitizer and valgrind.
#pragma once

#include <cstdint>

namespace rocemu::sanitizer {

bool has_memory_sanitizer();
/// Returns whether the program runs with MemorySanitizer or under valgrind.
bool is_initialization_watched();

void mark_initialized(const void* address, uint64_t length);

/// A call of a library that was built without MemorySanitizer: the arguments that it passes to the
/// C library are not checked during the call.
class UncheckedCall {
 public:
  UncheckedCall();
  ~UncheckedCall();
  UncheckedCall(const UncheckedCall&) = delete;
  UncheckedCall& operator=(const UncheckedCall&) = delete;
};

}  // namespace rocemu::sanitizer
