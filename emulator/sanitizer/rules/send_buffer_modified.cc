// send-buffer-modified: the bytes of a send are other ones when the program learns of its
// completion than when it was posted. Until then the NIC may read them, or read them again.
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
    for (uint64_t number = event.begin; number != event.end; ++number) {
      Request& request = event.queue.requests.at(number);
      request.checksum = is_read(request) ? host().checksum(request.sges) : std::nullopt;
    }
  }

  void on(const Completion& event) override {
    if (event.queue.kind != QueueKind::kSend) return;
    const bool is_success = event.status == static_cast<uint32_t>(abi::WcStatus::kSuccess);
    Requests& requests = event.queue.requests;
    for (uint64_t number = requests.finished() + 1;
         number <= event.last && number <= requests.posted(); ++number) {
      Request& request = requests.at(number);
      // A request that failed was perhaps never read.
      if (!request.checksum || (number == event.last && !is_success)) continue;
      const auto now = host().checksum(request.sges);
      if (!now || *now == *request.checksum) continue;
      report("changed the bytes of " + title_of(event.queue, number) +
                 " before it had polled the completion",
             {{"posted", request.posted}, {"polled", host().here("ibv_poll_cq")}});
    }
  }

 private:
  /// Not what the NIC writes itself, and nothing that the post has copied.
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
