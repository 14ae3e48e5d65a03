// A checksum of the program's memory, parts of which may not be readable.
#pragma once

#include <cstdint>

#include "emulator/sanitizer/report.h"

namespace rocemu::sanitizer {

class Checksum {
 public:
  /// Adds these bytes or, for a long message, the first of them. Returns false if they cannot be
  /// read. Asks the kernel only about pages that `readable` does not contain, and adds them to it.
  bool add(uint64_t address, uint64_t length, ReadableBytes& readable);
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0x9e3779b97f4a7c15;
};

}  // namespace rocemu::sanitizer
