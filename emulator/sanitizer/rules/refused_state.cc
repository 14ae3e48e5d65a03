// refused-state: a verb refuses an operation because of the object's present state. Examples are a
// post to a QP that is not ready, a transition that does not exist, and the destruction of an
// object that other objects use.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {
namespace {

class StateCheck : public CheckOf<kRefusedState> {
 public:
  using CheckOf::CheckOf;

  void on(const WrongState& event) override {
    report(event.message, {{"created", event.created}, {"refused", event.site}});
  }
};

}  // namespace

const Rule kRefusedState{
    .id = "refused-state",
    .severity = Severity::kWarning,
    .summary = "A verb refused an object because of its state, or because other objects use it.",
    .remedy =
        "Destroy the users of an object before the object. Move a QP through INIT, RTR and "
        "RTS before it sends.",
    .clause = "man ibv_modify_qp; man ibv_dealloc_pd; IBTA vol 1, 10.3.1",
    .make = make_check<StateCheck>,
};

}  // namespace rocemu::sanitizer
