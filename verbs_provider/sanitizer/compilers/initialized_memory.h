// With MemorySanitizer, and under valgrind: memory that the NIC has written is initialized.
#pragma once

#include <cstdint>

namespace rocemu::sanitizer {

bool has_memory_sanitizer();
/// Returns whether MemorySanitizer or valgrind watches the program.
bool is_initialization_watched();

void mark_initialized(const void* address, uint64_t length);

/// A call of a library that was built without MemorySanitizer: what it passes to the C library is
/// not checked meanwhile.
class UncheckedCall {
 public:
  UncheckedCall();
  ~UncheckedCall();
  UncheckedCall(const UncheckedCall&) = delete;
  UncheckedCall& operator=(const UncheckedCall&) = delete;
};

}  // namespace rocemu::sanitizer
