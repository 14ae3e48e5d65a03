// destroy-failed: a call to destroy an object failed, so that the object still exists. Programs
// often ignore the result of such a call, and leak the object.
#include <cerrno>

#include "emulator/abi/linux_names.h"
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

class DestroyFailedCheck : public CheckOf<kDestroyFailed> {
 public:
  using CheckOf::CheckOf;

  void on(const FailedDestruction& event) override {
    if (event.error == EIO) return;  // the device was removed with its objects
    const char* const name = abi::errno_name(event.error);
    report("could not destroy " + event.object.title() + ": " +
               std::string(info_of(event.object.kind).destroy) + " failed with " +
               (name != nullptr ? name : std::to_string(event.error)) +
               ", so the object still exists",
           {{"created", event.object.created}, {"failed", event.site}});
  }
};

}  // namespace

const Rule kDestroyFailed{
    .id = "destroy-failed",
    .severity = Severity::kWarning,
    .summary = "A verb failed to destroy an object.",
    .remedy =
        "Check the return value of each verb that destroys an object. After EBUSY, destroy "
        "the users of the object first.",
    .clause = "man ibv_destroy_cq; man ibv_dealloc_pd",
    .make = make_check<DestroyFailedCheck>,
};

}  // namespace rocemu::sanitizer
