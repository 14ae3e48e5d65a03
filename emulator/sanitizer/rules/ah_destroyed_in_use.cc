// ah-destroyed-in-use: the program destroys an address handle while a posted send uses it. Only the
// completion shows the program that the send has finished.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class AddressHandleCheck : public CheckOf<kAhDestroyedInUse> {
 public:
  using CheckOf::CheckOf;

  void on(const Destruction& event) override {
    if (event.object.kind != ObjectKind::kAh) return;
    const Queue* queue = nullptr;
    const Request* user = nullptr;
    event.objects.for_each_queue([&](const Queue& one) {
      if (one.kind != QueueKind::kSend || one.qp->context != event.object.context) return;
      one.requests.for_each([&](const Request& request) {
        const bool names_it =
            one.qp->type == abi::QpType::kUd && request.address_handle == event.object.number;
        if (names_it && user == nullptr) queue = &one, user = &request;
      });
    });
    if (user == nullptr) return;
    report("destroyed address handle " + std::to_string(event.object.number) + " while " +
               title_of(*queue, user->number) + " still names it",
           {{"posted", user->posted}, {"destroyed", event.site}});
  }
};

}  // namespace

const Rule kAhDestroyedInUse{
    .id = "ah-destroyed-in-use",
    .severity = Severity::kWarning,
    .summary = "An address handle is destroyed while a posted send names it.",
    .remedy = "Poll the completion of the send first.",
    .clause = "man ibv_destroy_ah; IBTA vol 1, 11.2.2.4",
    .make = make_check<AddressHandleCheck>,
};

}  // namespace rocemu::sanitizer
