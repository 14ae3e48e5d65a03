// Applies the rules that cause failures of work requests, requests at the responder, and calls.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/events.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/objects/queue_pair.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine::faults {

class FaultInjector;

/// Returns the error with which rules make a send work request fail when it is processed; nothing
/// if no rule does.
std::optional<LocalError> work_request_fault(FaultInjector& injector, QueuePair& qp, uint32_t index,
                                             uint64_t length);

/// The effect of a rule on a request packet, which is then not executed
struct RequestFault {
  std::optional<uint8_t> syndrome;  // of the response; nothing: there is none
};
std::optional<RequestFault> request_fault(FaultInjector& injector, const QueuePair& qp,
                                          const wire::Packet& packet, const wire::OpcodeInfo& info);

/// Returns the errno value with which rules make this call fail, or 0 if no rule does.
int verb_fault(FaultInjector& injector, const Objects& objects, ClientId client,
               const abi::Request& request);
int verb_fault(FaultInjector& injector, const CmCommand& command);

}  // namespace rocemu::engine::faults
