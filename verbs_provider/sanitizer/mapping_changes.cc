#include "verbs_provider/sanitizer/mapping_changes.h"

#include <algorithm>
#include <atomic>

namespace rocemu::sanitizer {
namespace {

/// The number of changes that are kept. Further changes are lost until these were processed.
constexpr size_t kMaxChanges = 256;
/// The number of changed parts that are kept for a region
constexpr size_t kMaxParts = 64;

struct Change {
  ibv_context* context;
  uint64_t begin, end;
  abi::MappingCall call;
  uint64_t time_ns;
  RawStack stack;
  std::atomic<bool> is_complete;
};

Change changes[kMaxChanges];
std::atomic<size_t> count{0};

const char* name_of(abi::MappingCall call) {
  switch (call) {
    case abi::MappingCall::kMunmap:
      return "munmap";
    case abi::MappingCall::kMmap:
      return "mmap";
    case abi::MappingCall::kMremap:
      return "mremap";
    case abi::MappingCall::kMadvise:
      return "madvise";
  }
  return "";
}

void tell(Program& program, const Change& change, const CallSite& site) {
  Objects& objects = program.objects();
  objects.regions.for_each([&](Mr& region) {
    const uint64_t begin = std::max(change.begin, region.memory);
    const uint64_t end = std::min(change.end, region.memory + region.length);
    if (region.memory == 0 || region.context != change.context || begin >= end) return;
    const ChangedPart part{region.address + (begin - region.memory),
                           region.address + (end - region.memory), site};
    if (region.changed.size() < kMaxParts) region.changed.push_back(part);
    objects.has_changed_mappings = true;
    program.sanitizer().tell(MappingChange{objects, region, part.begin, part.end, site});
  });
}

}  // namespace

void on_mapping_change(ibv_context* context, uint64_t begin, uint64_t end, abi::MappingCall call) {
  // madvise(2) is ignored, because allocators give advice about memory that they keep.
  if (call == abi::MappingCall::kMadvise) return;
  forget_marks(begin, end);
  const size_t at = count.fetch_add(1);
  if (at >= kMaxChanges) return;
  Change& change = changes[at];
  change.context = context;
  change.begin = begin;
  change.end = end;
  change.call = call;
  change.time_ns = Program::now_ns != nullptr ? Program::now_ns(context) : 0;
  change.stack.take();
  change.is_complete.store(true, std::memory_order_release);
}

void take_mapping_changes(Program& program) {
  const size_t noted = std::min(count.load(std::memory_order_relaxed), kMaxChanges);
  if (noted == 0) return;
  for (size_t i = 0; i < noted; ++i)
    if (!changes[i].is_complete.load(std::memory_order_acquire)) return;  // processed next time
  for (size_t i = 0; i < noted; ++i) {
    Change& change = changes[i];
    tell(program, change,
         {name_of(change.call), program.stacks().number_of(change.stack), change.time_ns});
    change.is_complete.store(false, std::memory_order_relaxed);
  }
  count.store(0, std::memory_order_release);
}

}  // namespace rocemu::sanitizer
