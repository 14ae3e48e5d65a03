// mr-deregistered-in-use: the program deregisters a region while a posted request uses it. Only the
// completion shows the program that a request has finished, so a request uses the region until its
// completion was polled, however fast the NIC is.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class DeregistrationCheck : public CheckOf<kMrDeregisteredInUse> {
 public:
  using CheckOf::CheckOf;

  void on(const Destruction& event) override {
    if (event.object.kind != ObjectKind::kMr) return;
    const auto& region = static_cast<const Mr&>(event.object);
    const Queue* queue = nullptr;
    const Request* user = nullptr;
    uint64_t users = 0;
    event.objects.for_each_queue([&](const Queue& one) {
      one.requests.for_each([&](const Request& request) {
        if (!names(request, region)) return;
        if (users++ == 0) queue = &one, user = &request;
      });
    });
    if (user == nullptr) return;
    report("deregistered memory region " + std::to_string(region.number) + " (lkey " +
               in_hex(region.lkey) + ") while " + title_of(*queue, user->number) +
               (users == 1 ? " still names it"
                           : " and " + count_of(users - 1, "other request") + " still name it"),
           {{"posted", user->posted}, {"deregistered", event.site}});
  }

 private:
  /// Returns whether the request uses the region. If the post copied the data (IBV_SEND_INLINE),
  /// the request uses no region.
  static bool names(const Request& request, const Mr& region) {
    if (request.is_inline) return false;
    for (const abi::Sge& sge : request.sges)
      if (sge.lkey == region.lkey && sge.length != 0) return true;
    return false;
  }
};

}  // namespace

const Rule kMrDeregisteredInUse{
    .id = "mr-deregistered-in-use",
    .severity = Severity::kError,
    .summary = "A memory region is deregistered while posted work names it.",
    .remedy =
        "Complete or flush the work first: move the QP to ERR and poll its flushed "
        "completions.",
    .clause = "man ibv_dereg_mr; IBTA vol 1, 10.6.7.2",
    .make = make_check<DeregistrationCheck>,
};

}  // namespace rocemu::sanitizer
