// qp-never-error-drained: the program destroys a QP in the error state before it has polled the
// completions of all the QP's requests. It may then free buffers of requests that some NICs are
// still flushing.
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class DrainCheck : public CheckOf<kQpNeverErrorDrained> {
 public:
  using CheckOf::CheckOf;

  void on(const Destruction& event) override {
    if (event.object.kind != ObjectKind::kQp) return;
    const auto& qp = static_cast<const Qp&>(event.object);
    if (qp.state != abi::QpState::kErr && !qp.had_error) return;
    const uint64_t sends = qp.sends.requests.size(), receives = qp.receives.requests.size();
    if (sends + receives == 0) return;
    const Queue& queue = sends != 0 ? qp.sends : qp.receives;
    std::string left = sends != 0 ? count_of(sends, "send") : "";
    if (receives != 0) left += (left.empty() ? "" : " and ") + count_of(receives, "receive");
    report("destroyed " + qp.title() +
               ", which is in the error state, without having polled the "
               "flushed completions of " +
               left,
           {{"posted the oldest", queue.requests.at(queue.requests.finished() + 1).posted},
            {"destroyed", event.site}});
  }
};

}  // namespace

const Rule kQpNeverErrorDrained{
    .id = "qp-never-error-drained",
    .severity = Severity::kWarning,
    .summary = "A QP in the error state is destroyed before its flushed completions were polled.",
    .remedy = "Poll the completion of the last request of each queue, and then destroy the QP.",
    .clause = "man ibv_destroy_qp; IBTA vol 1, 10.3.1 and 11.2.4.4",
    .make = make_check<DrainCheck>,
};

}  // namespace rocemu::sanitizer
