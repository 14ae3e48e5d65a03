#include "verbs_provider/datapath/payload.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "verbs_provider/base/unchecked_copy.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

using abi::PayloadSlot;

constexpr uint64_t kPage = 4096;  // or a multiple of it
constexpr uint32_t kYieldsPerCheck = 1000;

constexpr uint64_t kWord = 8;

/// Returns whether the word, which is about to be overwritten, can be written: the kernel writes
/// the thread's signal mask to it. This is the cheapest call that writes to memory.
bool overwrite(uint64_t address) {
  return system_call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, address, kWord) == 0;
}

/// Returns whether the word can be written, without changing the word of 4 bytes around the
/// address: the kernel adds 0 to it, and wakes no thread.
bool is_writable(uint64_t address) {
  uint32_t unused = 0;
  constexpr long kWakes = 0;
  constexpr uint32_t kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  return system_call(SYS_futex, &unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, kWakes, kWakes,
                     address & ~uint64_t{3}, kAddNothing) >= 0;
}

/// Returns whether the buffer may be written. This must be checked before each copy, since the
/// program may have unmapped the buffer. A NIC has it pinned, and the program must not crash.
bool may_be_written(uint64_t address, uint64_t length, WritablePage& known) {
  const uint64_t last = address + length - 1;
  const uint64_t first_page = address / kPage, last_page = last / kPage;
  const bool is_short = length < kWord;
  if (first_page != known.number && !(is_short ? is_writable(address) : overwrite(address))) {
    return false;
  }
  known.number = first_page;
  if (last_page == first_page) return true;
  if (!(is_short ? is_writable(last) : overwrite(address + length - kWord))) return false;
  known.number = last_page;
  return true;
}

/// Writes to memory like to pinned pages, including pages that became read-only.
void write_pinned(uint64_t address, const std::byte* from, uint64_t length) {
  const long file =
      system_call(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  while (length != 0) {
    const uint64_t piece = std::min(length, kPage - address % kPage);
    system_call(SYS_pwrite64, file, from, piece, address);
    address += piece;
    from += piece;
    length -= piece;
  }
  system_call(SYS_close, file);
}

void copy(const PayloadSlot& slot, WritablePage& known) {
  const auto* from = reinterpret_cast<const std::byte*>(slot.bytes);
  const uint64_t count = std::min<uint64_t>(slot.range_count, PayloadSlot::kMaxRanges);
  uint64_t left = PayloadSlot::kMaxBytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t address = slot.ranges[i].address;
    const uint64_t length = std::min(slot.ranges[i].length, left);
    if (length == 0) continue;
    if (may_be_written(address, length, known)) [[likely]] {
      unchecked_copy(reinterpret_cast<std::byte*>(address), from, length);
    } else {
      write_pinned(address, from, length);
    }
    from += length;
    left -= length;
  }
}

}  // namespace

void receive_payload(Context::Parts& parts, uint32_t cq, uint32_t index, const abi::Cqe& cqe,
                     WritablePage& known) {
  PayloadSlot& slot = parts.shared_payload().received.slots[cqe.payload - 1];
  uint64_t state = abi::payload_state(cq, index, PayloadSlot::kFull);
  if (slot.state.compare_exchange_strong(state, abi::payload_state(cq, index, PayloadSlot::kTaken),
                                         std::memory_order_acquire)) {
    const int saved = errno;
    copy(slot, known);
    errno = saved;
    slot.state.store(abi::payload_state(cq, index, PayloadSlot::kEmpty), std::memory_order_release);
    return;
  }
  // The daemon has withdrawn the payload, and may not have written all of it yet.
  const uint64_t withdrawn = abi::payload_state(cq, index, PayloadSlot::kWithdrawn);
  for (uint32_t yields = 1; slot.state.load(std::memory_order_acquire) == withdrawn; ++yields) {
    sched_yield();
    if (yields % kYieldsPerCheck == 0 && parts.doorbells.is_daemon_gone()) return;
  }
}

}  // namespace rocemu::provider
