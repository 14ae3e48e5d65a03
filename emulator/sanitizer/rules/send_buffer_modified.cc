// send-buffer-modified: the bytes of a send changed after it was posted, and before the program
// polled its completion or ended. Until the completion, the NIC may read the bytes, or read them
// again.
#include <algorithm>
#include <vector>

#include "emulator/abi/send_opcodes.h"
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

class ModifiedCheck : public CheckOf<kSendBufferModified> {
 public:
  using CheckOf::CheckOf;

  void on(const Post& event) override {
    if (event.queue.kind != QueueKind::kSend) return;
    ReadableBytes readable;
    for (uint64_t number = event.begin; number != event.end; ++number) {
      Request& request = event.queue.requests.at(number);
      const bool is_checked =
          is_read(request) && !waits_for_its_bytes(event.objects, event.queue, request);
      request.checksum = is_checked ? host().checksum(request.sges, readable) : std::nullopt;
    }
  }

  void on(const Completion& event) override {
    if (event.queue.kind != QueueKind::kSend) return;
    const bool is_success = event.status == static_cast<uint32_t>(abi::WcStatus::kSuccess);
    Requests& requests = event.queue.requests;
    ReadableBytes readable;
    for (uint64_t number = requests.finished() + 1;
         number <= event.last && number <= requests.posted(); ++number) {
      Request& request = requests.at(number);
      // If a request failed, the NIC may never have read its bytes, so a change may have been
      // harmless.
      if (!request.checksum || (number == event.last && !is_success)) continue;
      const auto now = host().checksum(request.sges, readable);
      if (!now || *now == *request.checksum) continue;
      report("changed the bytes of " + title_of(event.queue, number) +
                 " before it had polled the completion",
             {{"posted", request.posted}, {"polled", host().here("ibv_poll_cq")}});
    }
  }

  /// RESET and the destruction of the QP discard the completions of its sends.
  void on(const StateChange& event) override {
    if (event.to == abi::QpState::kReset) judge_discarded(event.qp, "reset", event.site);
  }
  void on(const Destruction& event) override {
    if (event.object.kind == ObjectKind::kQp)
      judge_discarded(static_cast<const Qp&>(event.object), "destroyed", event.site);
  }

  /// Checks the sends that are outstanding when the program ends: a program that finds wrong data
  /// at the other end often exits before it polls.
  void on(const ProgramEnd& event) override {
    std::vector<const Qp*> qps;
    event.objects.for_each_object([&](const Object& object) {
      if (object.kind == ObjectKind::kQp) qps.push_back(static_cast<const Qp*>(&object));
    });
    std::ranges::sort(qps, {}, &Qp::number);
    for (const Qp* qp : qps) {
      for_each_changed(*qp, qp->sends.requests.posted(), [&](const Request& request) {
        report("changed the bytes of " + title_of(qp->sends, request.number) +
                   " and ended before it had polled the completion",
               {{"posted", request.posted}});
      });
    }
  }

 private:
  /// Checks the sends up to the last signaled one. The program may know that a later one has
  /// arrived, by an answer of the peer, and has nothing to poll for it.
  void judge_discarded(const Qp& qp, std::string_view what, const CallSite& site) {
    uint64_t last = 0;
    qp.sends.requests.for_each([&](const Request& request) {
      if (request.is_signaled) last = request.number;
    });
    for_each_changed(qp, last, [&](const Request& request) {
      report("changed the bytes of " + title_of(qp.sends, request.number) +
                 " before it had polled the completion",
             {{"posted", request.posted}, {what, site}});
    });
  }

  /// Calls visit(request) for each outstanding send up to that number whose bytes have changed. If
  /// the QP has failed, the NIC may never have read them.
  template <class Visit>
  void for_each_changed(const Qp& qp, uint64_t last, Visit visit) {
    if (qp.state == abi::QpState::kErr || qp.had_error) return;
    ReadableBytes readable;
    qp.sends.requests.for_each([&](const Request& request) {
      if (!request.checksum || request.number > last) return;
      if (request.number <= qp.sends_before_recovery) return;
      const auto now = host().checksum(request.sges, readable);
      if (now && *now != *request.checksum) visit(request);
    });
  }

  /// Returns whether an outstanding READ or atomic of the queue may still write the request's
  /// bytes, and a fence makes the request wait for it. ibv_post_send(3): IBV_SEND_FENCE; IBTA vol
  /// 1, 10.8.3.3: such a request begins only when all earlier READs and atomics have finished.
  static bool waits_for_its_bytes(const Objects& objects, const Queue& queue,
                                  const Request& request) {
    if (!request.is_fenced) return false;
    const Requests& requests = queue.requests;
    for (uint64_t number = requests.finished() + 1; number < request.number; ++number) {
      const Request& earlier = requests.at(number);
      if (is_written(earlier) && overlap(objects, earlier.sges, request.sges)) return true;
    }
    return false;
  }

  /// Returns whether the NIC writes the request's bytes.
  static bool is_written(const Request& request) {
    switch (static_cast<abi::WrOpcode>(request.opcode)) {
      case abi::WrOpcode::kRdmaRead:
      case abi::WrOpcode::kAtomicCmpAndSwp:
      case abi::WrOpcode::kAtomicFetchAndAdd:
        return true;
      default:
        return false;
    }
  }

  /// Returns whether two lists of SGEs may name the same bytes.
  static bool overlap(const Objects& objects, const std::vector<abi::Sge>& some,
                      const std::vector<abi::Sge>& others) {
    for (const abi::Sge& one : some)
      for (const abi::Sge& other : others) {
        const bool has_one_key = one.lkey == other.lkey;
        const uint64_t begin = has_one_key ? one.address : objects.memory_of(one);
        const uint64_t other_begin = has_one_key ? other.address : objects.memory_of(other);
        const bool is_known = has_one_key || (begin != 0 && other_begin != 0);
        if (!is_known || (begin < other_begin + other.length && other_begin < begin + one.length))
          return true;
      }
    return false;
  }

  /// Returns whether the NIC reads the request's bytes. It does not if the request makes the NIC
  /// write them, or if the post has copied them.
  static bool is_read(const Request& request) {
    switch (static_cast<abi::WrOpcode>(request.opcode)) {
      case abi::WrOpcode::kSend:
      case abi::WrOpcode::kSendWithImm:
      case abi::WrOpcode::kSendWithInv:
      case abi::WrOpcode::kRdmaWrite:
      case abi::WrOpcode::kRdmaWriteWithImm:
        return !request.is_inline && !request.sges.empty();
      default:
        return false;
    }
  }
};

}  // namespace

const Rule kSendBufferModified{
    .id = "send-buffer-modified",
    .severity = Severity::kError,
    .summary = "The program changes the buffer of a send before it has polled the completion.",
    .remedy =
        "Change the buffer only after you have polled the completion of the send or of a "
        "later request, or send with IBV_SEND_INLINE.",
    .clause = "man ibv_post_send; IBTA vol 1, 10.8.3",
    .make = make_check<ModifiedCheck>,
};

}  // namespace rocemu::sanitizer
