// Work requests, requests at the responder and calls that rules make fail.
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

/// What a send work request whose turn it is has to fail with.
std::optional<LocalError> work_request_fault(FaultInjector& injector, QueuePair& qp, uint32_t index,
                                             uint64_t length);

/// What becomes of a request packet that is not executed.
struct RequestFault {
  std::optional<uint8_t> syndrome;  // of the answer; nothing: there is none
};
std::optional<RequestFault> request_fault(FaultInjector& injector, const QueuePair& qp,
                                          const wire::Packet& packet, const wire::OpcodeInfo& info);

/// The errno that a call has to fail with, or 0. `qp` is the QP that the call is about, if it is
/// about one.
int verb_fault(FaultInjector& injector, const Objects& objects, ClientId client,
               const abi::Request& request);
int verb_fault(FaultInjector& injector, const CmCommand& command);

}  // namespace rocemu::engine::faults
