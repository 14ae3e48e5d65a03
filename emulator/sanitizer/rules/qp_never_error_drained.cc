// qp-never-error-drained: the program destroys a QP in the error state before it has polled the
// completions of all the QP's requests. It may then free buffers of requests that some NICs are
// still flushing. In SQE only sends are flushed. A send that was not signaled and is executed has
// no completion; so such sends count only behind a send that failed.
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
    const bool is_in_err = qp.state == abi::QpState::kErr || qp.flushes_receives;
    if (!is_in_err && !qp.flushes_sends) return;
    const Request* oldest = nullptr;
    uint64_t sends = 0, receives = 0;
    qp.sends.requests.for_each([&](const Request& request) {
      if (!request.is_signaled && !qp.flushes_sends) return;
      if (sends++ == 0) oldest = &request;
    });
    if (is_in_err) receives = qp.receives.requests.size();
    if (sends + receives == 0) return;
    if (oldest == nullptr) oldest = &qp.receives.requests.at(qp.receives.requests.finished() + 1);
    std::string left = sends != 0 ? count_of(sends, "send") : "";
    if (receives != 0) left += (left.empty() ? "" : " and ") + count_of(receives, "receive");
    report("destroyed " + qp.title() +
               (is_in_err ? ", which is in the error state" : ", which is in SQE") +
               ", without having polled the flushed completions of " + left,
           {{"posted the oldest", oldest->posted}, {"destroyed", event.site}});
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
