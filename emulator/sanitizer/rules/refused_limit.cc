// refused-limit: a verb refuses a request that exceeds a limit. The error number does not show
// which limit was exceeded. A full queue is not a limit in this sense, but back-pressure.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

class LimitCheck : public CheckOf<kRefusedLimit> {
 public:
  using CheckOf::CheckOf;

  void on(const BeyondLimit& event) override {
    report("asked for " + std::string(event.attribute) + " = " + std::to_string(event.asked) +
               " of " + event.whose + ", which allows " + std::to_string(event.allowed),
           {{"refused", event.site}});
  }
};

}  // namespace

const Rule kRefusedLimit{
    .id = "refused-limit",
    .severity = Severity::kWarning,
    .summary = "A verb refused a value beyond a limit.",
    .remedy =
        "Ask for less. ibv_query_device() returns the limits of the device, and "
        "ibv_create_qp() writes the limits of the QP back.",
    .clause = "man ibv_query_device; man ibv_create_qp; IBTA vol 1, 11.2.1.2",
    .make = make_check<LimitCheck>,
};

}  // namespace rocemu::sanitizer
