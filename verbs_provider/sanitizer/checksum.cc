#include "verbs_provider/sanitizer/checksum.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <sys/uio.h>

#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 20;
constexpr size_t kPiece = 16384;

uint64_t mix(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xff51afd7ed558ccd;
  return value ^ value >> 32;
}

}  // namespace

/// The kernel copies, so that memory that was unmapped is no crash.
bool Checksum::add(uint64_t address, uint64_t length) {
  length = std::min(length, kMost);
  const long self = turns::kernel(SYS_getpid);
  alignas(8) unsigned char piece[kPiece];
  while (length != 0) {
    const size_t size = std::min<uint64_t>(length, kPiece);
    const iovec to{piece, size}, from{reinterpret_cast<void*>(address), size};
    if (turns::kernel(SYS_process_vm_readv, self, &to, 1L, &from, 1L, 0L) !=
        static_cast<long>(size))
      return false;
    memset(piece + size, 0, (8 - size % 8) % 8);
    for (size_t at = 0; at < size; at += 8) {
      uint64_t word;
      memcpy(&word, piece + at, 8);
      value_ = mix(value_, word);
    }
    address += size;
    length -= size;
  }
  return true;
}

}  // namespace rocemu::sanitizer
