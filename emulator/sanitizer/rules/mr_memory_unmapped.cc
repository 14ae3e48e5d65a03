// mr-memory-unmapped: the program unmapped memory of a region that still exists, or mapped other
// memory in its place, and then a request uses that memory. The NIC has pinned the old pages, so it
// does not access the memory that the program sees.
#include <algorithm>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class UnmappedCheck : public CheckOf<kMrMemoryUnmapped> {
 public:
  using CheckOf::CheckOf;

  void on(const MappingChange& event) override {
    const Queue* queue = nullptr;
    const Request* user = nullptr;
    event.objects.for_each_queue([&](const Queue& one) {
      one.requests.for_each([&](const Request& request) {
        if (user == nullptr && names(request, event.region, event.begin, event.end))
          queue = &one, user = &request;
      });
    });
    if (user == nullptr) return;
    report(
        std::string(event.site.call) + " changed the memory of memory region " +
            std::to_string(event.region.number) + ", which " + title_of(*queue, user->number) +
            " names",
        {{"registered", event.region.created}, {"posted", user->posted}, {"changed", event.site}});
  }

  void on(const Post& event) override {
    if (!event.objects.has_changed_mappings) return;
    event.objects.regions.for_each([&](const Mr& region) {
      for (const ChangedPart& part : region.changed) {
        for (uint64_t number = event.begin; number != event.end; ++number) {
          if (!names(event.queue.requests.at(number), region, part.begin, part.end)) continue;
          return report(
              "posted " + title_of(event.queue, number) + ", which names memory of memory region " +
                  std::to_string(region.number) + " that " + std::string(part.site.call) +
                  " has changed since",
              {{"registered", region.created}, {"changed", part.site}, {"posted", event.site}});
        }
      }
    });
  }

 private:
  /// Returns whether an SGE of the request covers a part of [begin, end). `begin` and `end` are
  /// addresses as SGEs for the region use them.
  static bool names(const Request& request, const Mr& region, uint64_t begin, uint64_t end) {
    if (request.is_inline) return false;
    return std::ranges::any_of(request.sges, [&](const abi::Sge& sge) {
      return sge.lkey == region.lkey && sge.length != 0 && sge.address < end &&
             begin < sge.address + sge.length;
    });
  }
};

}  // namespace

const Rule kMrMemoryUnmapped{
    .id = "mr-memory-unmapped",
    .severity = Severity::kError,
    .summary =
        "The program uses a region after it has unmapped or replaced the memory of the "
        "region.",
    .remedy = "Deregister the region before you unmap its memory, and register the new memory.",
    .clause = "man ibv_reg_mr; man ibv_dereg_mr; IBTA vol 1, 10.6.2",
    .make = make_check<UnmappedCheck>,
};

}  // namespace rocemu::sanitizer
