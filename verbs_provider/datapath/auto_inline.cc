#include "verbs_provider/datapath/auto_inline.h"

#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/abi/rings.h"
#include "verbs_provider/base/unchecked_copy.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/structs/mr.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

constexpr uint64_t kPage = 4096;  // or a multiple of it

/// Returns whether the word around the address can be read. The kernel reads the word as a set of
/// signals, but changes no mask, because `how` is invalid (sigprocmask(2)).
bool is_readable(uint64_t address) {
  constexpr int kNoHow = -1;
  constexpr uint64_t kWord = 8;
  const int saved = errno;
  system_call(SYS_rt_sigprocmask, kNoHow, address & ~(kWord - 1), nullptr, kWord);
  const bool readable = errno != EFAULT;
  errno = saved;
  return readable;
}

/// Returns whether the data can be read. A region can have holes: posting a hole causes an error
/// completion, not a crash.
bool is_there(const ibv_sge& sge) {
  const uint64_t last = sge.addr + sge.length - 1;
  return is_readable(sge.addr) && (sge.addr / kPage == last / kPage || is_readable(last));
}

bool is_registered(Context::Parts& parts, const ibv_sge& sge) {
  const Guard guard(parts.regions_lock);
  const Mr* mr = parts.regions.find(region_number(sge.lkey));
  if (mr == nullptr || mr->verbs.mr.lkey != sge.lkey || sge.addr < mr->own_address) return false;
  const uint64_t offset = sge.addr - mr->own_address;
  return offset <= mr->own_length && sge.length <= mr->own_length - offset;
}

/// Copies the data of the list. Returns false if a part of it cannot be read.
bool copy(Context::Parts& parts, const ibv_sge* list, uint32_t count, std::byte* to) {
  for (uint32_t i = 0; i < count; ++i) {
    if (list[i].length == 0) continue;
    if (!is_registered(parts, list[i]) || !is_there(list[i])) return false;
    unchecked_copy(to, reinterpret_cast<const std::byte*>(list[i].addr), list[i].length);
    to += list[i].length;
  }
  return true;
}

}  // namespace

void carry(ibv_context* context, const ibv_sge* list, uint32_t count, std::byte* behind_list,
           WorkQueue& queue, abi::SendWqe& wqe) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += list[i].length;
  if (total == 0 || total > abi::SendSlots::kMaxBytes) return;
  Context::Parts& parts = context_of(context)->parts;
  if (parts.doorbells.has_exact_memory()) return;
  // An access may have to wait until a program has provided the page, but a post must not wait.
  if (parts.told_of_blocking_memory.load(std::memory_order_relaxed)) return;
  if (total <= abi::kMaxCarried) {
    if (copy(parts, list, count, behind_list)) wqe.inline_size = static_cast<uint32_t>(total);
    return;
  }
  const bool has_slots = parts.has_payload() && queue.slot_of_entry != nullptr;
  if (!has_slots) return;
  const uint32_t slot = parts.free_send_slots.take();
  if (slot == 0) return;
  auto* bytes = reinterpret_cast<std::byte*>(parts.shared_payload().sent.bytes[slot - 1]);
  if (!copy(parts, list, count, bytes)) return parts.free_send_slots.give_back(slot);
  queue.note_send_slot(queue.posted, slot);
  wqe.slot = slot;
}

void release_slots(Context::Parts& parts, WorkQueue& queue, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i != end; ++i) {
    if (const uint32_t slot = queue.take_send_slot(i)) parts.free_send_slots.give_back(slot);
  }
}

}  // namespace rocemu::provider
