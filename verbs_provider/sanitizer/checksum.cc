#include "verbs_provider/sanitizer/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/uio.h>

#include "verbs_provider/base/valgrind.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 20;
constexpr size_t kPiece = 16384;
constexpr uint64_t kSmallestPage = 4096;

uint64_t mix(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xff51afd7ed558ccd;
  return value ^ value >> 32;
}

/// Returns the sum. Four independent sums are used, so that a multiplication does not wait for the
/// previous one.
uint64_t sum_of(uint64_t value, const unsigned char* bytes, size_t size) {
  constexpr size_t kLanes = 4, kStep = kLanes * sizeof(uint64_t);
  uint64_t lanes[kLanes] = {value, value + 1, value + 2, value + 3};
  size_t at = 0;
  for (; at + kStep <= size; at += kStep) {
    uint64_t words[kLanes];
    memcpy(words, bytes + at, kStep);
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  for (; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, bytes + at, std::min(size - at, sizeof word));
    lanes[0] = mix(lanes[0], word);
  }
  for (size_t lane = 1; lane < kLanes; ++lane) lanes[0] = mix(lanes[0], lanes[lane]);
  return mix(lanes[0], size);
}

/// Returns whether the word can be read. The kernel first reads the set of signals, and then
/// refuses the operation (sigprocmask(2), EINVAL): this takes a tenth of the time of
/// process_vm_readv(2).
bool can_read_word(uint64_t address) {
  constexpr long kNothing = -1, kSizeOfSet = 8;
  return turns::kernel(SYS_rt_sigprocmask, kNothing, address & ~uint64_t{7}, 0L, kSizeOfSet) ==
         -EINVAL;
}

/// Returns whether all pages can be read, so that unmapped memory does not cause a crash. Several
/// pages take one call if the kernel has MADV_POPULATE_READ (madvise(2), Linux 5.14) and supports
/// it for this memory; otherwise it returns EINVAL.
bool is_readable(uint64_t address, uint64_t length) {
  constexpr long kPopulateRead = 22;
  const uint64_t begin = address & ~(kSmallestPage - 1);
  if (address + length - begin > kSmallestPage) {
    const long result = turns::kernel(SYS_madvise, begin, address + length - begin, kPopulateRead);
    if (result != -EINVAL) return result == 0;
  }
  for (uint64_t at = address; at < address + length; at = (at | (kSmallestPage - 1)) + 1)
    if (!can_read_word(at)) return false;
  return true;
}

/// Adds the bytes under valgrind, by reading them like those of another process: valgrind would
/// check bytes that a system call or this library reads directly.
bool add_copies(uint64_t& value, uint64_t address, uint64_t length) {
  const long self = turns::kernel(SYS_gettid);
  unsigned char piece[kPiece];
  for (; length != 0;) {
    const size_t size = std::min<uint64_t>(length, kPiece);
    const iovec to{piece, size}, from{reinterpret_cast<void*>(address), size};
    if (turns::kernel(SYS_process_vm_readv, self, &to, 1L, &from, 1L, 0L) !=
        static_cast<long>(size))
      return false;
    value = sum_of(value, piece, size);
    address += size;
    length -= size;
  }
  return true;
}

}  // namespace

bool Checksum::add(uint64_t address, uint64_t length, ReadableBytes& readable) {
  length = std::min(length, kMost);
  if (provider::runs_under_valgrind()) return add_copies(value_, address, length);
  if (address < readable.begin || address + length > readable.end) {
    if (!is_readable(address, length)) return false;
    readable = {address & ~(kSmallestPage - 1),
                (address + length + kSmallestPage - 1) & ~(kSmallestPage - 1)};
  }
  value_ = sum_of(value_, reinterpret_cast<const unsigned char*>(address), length);
  return true;
}

}  // namespace rocemu::sanitizer
