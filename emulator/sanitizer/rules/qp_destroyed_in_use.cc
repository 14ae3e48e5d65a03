// qp-destroyed-in-use: the program destroys a QP that has signaled sends whose completions it has
// not polled. So it never learns whether these sends were executed. Outstanding receives are usual,
// and so are outstanding requests of a QP that the program moved to ERR to abandon it; they are not
// reported.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class QpInUseCheck : public CheckOf<kQpDestroyedInUse> {
 public:
  using CheckOf::CheckOf;

  void on(const Destruction& event) override {
    if (event.object.kind != ObjectKind::kQp) return;
    const auto& qp = static_cast<const Qp&>(event.object);
    if (qp.state == abi::QpState::kErr || qp.had_error) return;
    const Request* oldest = nullptr;
    uint64_t count = 0;
    qp.sends.requests.for_each([&](const Request& request) {
      if (!request.is_signaled) return;
      if (count++ == 0) oldest = &request;
    });
    if (oldest == nullptr) return;
    report("destroyed QP " + std::to_string(qp.number) + " with " +
               count_of(count, "signaled send") + " whose completion it has not polled",
           {{"posted the oldest", oldest->posted}, {"destroyed", event.site}});
  }
};

}  // namespace

const Rule kQpDestroyedInUse{
    .id = "qp-destroyed-in-use",
    .severity = Severity::kWarning,
    .summary = "A QP is destroyed with signaled sends whose completions were not polled.",
    .remedy =
        "Poll the completions first, or move the QP to ERR and poll the flushed completions. "
        "Otherwise the program cannot know whether the sends were executed.",
    .clause = "man ibv_destroy_qp; IBTA vol 1, 11.2.4.4",
    .make = make_check<QpInUseCheck>,
};

}  // namespace rocemu::sanitizer
