// protection-explained: explains why an access to memory was refused, since the completion only
// shows that it was refused. For a peer's access, the NIC knows the reason. For the program's own
// requests, the reason follows from the program's regions.
#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {
namespace {

/// Returns a text that says how far the range of `length` bytes at `address` extends beyond the
/// permitted range.
std::string beyond(uint64_t address, uint64_t length, uint64_t opened, uint64_t opened_length,
                   bool is_window = false) {
  const std::string whole =
      std::string(is_window ? "window of " : "region of ") + count_of(opened_length, "byte");
  if (address < opened)
    return "begin " + count_of(opened - address, "byte") + " before the " + whole;
  return "end " + count_of(address - opened + length - opened_length, "byte") + " behind the " +
         whole;
}

std::string_view operation_of(uint32_t access) {
  if ((access & abi::kAccessRemoteAtomic) != 0) return "execute an atomic on";
  if ((access & abi::kAccessRemoteRead) != 0) return "read";
  if ((access & abi::kAccessRemoteWrite) != 0) return "write";
  return "flush";
}

std::string_view flag_of(uint32_t access) {
  if ((access & abi::kAccessRemoteAtomic) != 0) return "IBV_ACCESS_REMOTE_ATOMIC";
  if ((access & abi::kAccessRemoteRead) != 0) return "IBV_ACCESS_REMOTE_READ";
  if ((access & abi::kAccessRemoteWrite) != 0) return "IBV_ACCESS_REMOTE_WRITE";
  return "IBV_ACCESS_FLUSH_GLOBAL or IBV_ACCESS_FLUSH_PERSISTENT";
}

std::string reason_of(const RefusedAccess& refused) {
  const std::string key = "R_Key " + in_hex(refused.rkey);
  const std::string of_key = (refused.is_window ? "the window of " : "the region of ") + key;
  switch (refused.reason) {
    case RefusalReason::kUnknownKey:
      return "no region has " + key;
    case RefusalReason::kDeregistered:
      return "the region of " + key + " was deregistered";
    case RefusalReason::kOtherPd:
      return of_key + " belongs to another PD than the QP";
    case RefusalReason::kOtherQp:
      return of_key + " is bound for another QP";
    case RefusalReason::kNoAccess:
      return of_key + (refused.is_window ? " was bound without " : " was registered without ") +
             std::string(flag_of(refused.access));
    case RefusalReason::kBeyond:
      return "they " + beyond(refused.address, refused.length, refused.opened_address,
                              refused.opened_length, refused.is_window);
  }
  return "";
}

class ProtectionCheck : public CheckOf<kProtectionExplained> {
 public:
  using CheckOf::CheckOf;

  void on(const Completion& event) override {
    if (event.status != static_cast<uint32_t>(abi::WcStatus::kLocProtErr)) return;
    const Request* const request = event.request;
    if (request == nullptr) return;
    const std::string reason = reason_of(event.objects, event.queue, *request);
    if (reason.empty()) return;
    report("got a local protection error for " + title_of(event.queue, request->number) + ": " +
               reason,
           {{"posted", request->posted}, {"polled", event.site}});
  }

 private:
  static const Mr* region_of(const Objects& objects, uint32_t lkey) {
    const Mr* found = nullptr;
    objects.regions.for_each([&](const Mr& region) {
      if (region.lkey == lkey) found = &region;
    });
    return found;
  }

  /// Returns the reason why the access was refused; an empty text if every SGE is correct according
  /// to the program's regions.
  static std::string reason_of(const Objects& objects, const Queue& queue, const Request& request) {
    for (const abi::Sge& sge : request.sges) {
      if (sge.length == 0) continue;
      const std::string key = "L_Key " + in_hex(sge.lkey);
      const Mr* const region = region_of(objects, sge.lkey);
      if (region == nullptr) return "no region has " + key;
      if (queue.qp != nullptr && region->pd != queue.qp->pd)
        return "the region of " + key + " belongs to another PD than the QP";
      const bool is_written =
          queue.kind != QueueKind::kSend || is_answered_with_data(request.opcode);
      if (is_written && !region->is_writable)
        return "the region of " + key + " was registered without IBV_ACCESS_LOCAL_WRITE";
      if (!region->has_addresses) continue;
      if (sge.address < region->address ||
          sge.address + sge.length > region->address + region->length)
        return "the bytes of its SGE with " + key + " " +
               beyond(sge.address, sge.length, region->address, region->length);
    }
    return "";
  }

  static bool is_answered_with_data(uint32_t opcode) {
    const auto kind = static_cast<abi::WrOpcode>(opcode);
    return kind == abi::WrOpcode::kRdmaRead || kind == abi::WrOpcode::kAtomicCmpAndSwp ||
           kind == abi::WrOpcode::kAtomicFetchAndAdd;
  }
};

}  // namespace

const Rule kProtectionExplained{
    .id = "protection-explained",
    .severity = Severity::kError,
    .summary = "The NIC refused an access to memory.",
    .remedy =
        "Name bytes inside a region of the QP's PD that was registered with the access flag "
        "that the operation needs.",
    .clause = "man ibv_reg_mr; man ibv_poll_cq; IBTA vol 1, 9.7.4.1.3 and C10-72 to C10-77",
    .make = make_check<ProtectionCheck>,
};

NicFinding access_refused(const RefusedAccess& refused) {
  const std::string title = "QP " + std::to_string(refused.qp);
  const std::string message = "refused QP " + std::to_string(refused.from) + ", which asked " +
                              title + " to " + std::string(operation_of(refused.access)) + " " +
                              count_of(refused.length, "byte") + ": " + reason_of(refused);
  if (refused.reason == RefusalReason::kDeregistered)
    return {kRkeyStale, message, {{"deregistered", "R_Key " + in_hex(refused.rkey)}}};
  return {kProtectionExplained, message, {{"created", title}}};
}

}  // namespace rocemu::sanitizer
