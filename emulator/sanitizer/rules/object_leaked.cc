// object-leaked: the program ends, and objects that it created still exist. The kernel destroys
// them, so this rule is only checked on request.
#include <algorithm>
#include <vector>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

class LeakCheck : public CheckOf<kObjectLeaked> {
 public:
  using CheckOf::CheckOf;

  void on(const ProgramEnd& event) override {
    std::vector<const Object*> left;
    event.objects.for_each_object([&](const Object& object) { left.push_back(&object); });
    std::ranges::sort(left, {},
                      [](const Object* one) { return std::pair(one->kind, one->number); });
    for (const Object* object : left)
      report("ended without having destroyed " + object->title(), {{"created", object->created}});
  }
};

}  // namespace

const Rule kObjectLeaked{
    .id = "object-leaked",
    .severity = Severity::kWarning,
    .summary = "A program exits without destroying an object.",
    .remedy = "Destroy each object before the program exits, and its users before that.",
    .clause = "man ibv_close_device",
    .make = make_check<LeakCheck>,
    .is_default = false,
};

}  // namespace rocemu::sanitizer
