// fork-unprotected: a process that has registered memory forks without ibv_fork_init(). When the
// kernel then copies a page on a write, the parent may get the copy, while the NIC still uses the
// original page. This does not concern memory that is shared with the child, or that the program
// has withheld from it by MADV_DONTFORK, as ibv_fork_init() does.
#include <algorithm>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class ForkCheck : public CheckOf<kForkUnprotected> {
 public:
  using CheckOf::CheckOf;

  void on(const Fork& event) override {
    if (event.is_protected) return;
    const Mr* first = nullptr;
    uint64_t count = 0;
    event.objects.regions.for_each([&](const Mr& region) {
      if (is_kept(region, event.kept)) return;
      ++count;
      if (first == nullptr || region.number < first->number) first = &region;
    });
    if (first == nullptr) return;
    report("forked with " + count_of(count, "registered memory region") +
               ", and has not called ibv_fork_init",
           {{"registered", first->created}, {"forked", event.site}});
  }

 private:
  /// Returns whether fork() leaves the region's pages to the process. A region without memory of
  /// the process, such as device memory, has none that could be copied.
  static bool is_kept(const Mr& region, std::span<const MemoryRange> kept) {
    return region.memory == 0 || std::ranges::any_of(kept, [&](const MemoryRange& range) {
             return range.address <= region.memory &&
                    region.memory + region.length <= range.address + range.length;
           });
  }
};

}  // namespace

const Rule kForkUnprotected{
    .id = "fork-unprotected",
    .severity = Severity::kWarning,
    .summary = "A process forks with registered memory and without ibv_fork_init().",
    .remedy = "Call ibv_fork_init() before you register the first region, or fork before that.",
    .clause = "man ibv_fork_init",
    .make = make_check<ForkCheck>,
};

}  // namespace rocemu::sanitizer
