// Work requests, requests at the responder and calls that rules make fail.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/events.h"
#include "emulator/engine/objects/queue_pair.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace rocemu::engine {

class Fabric;

namespace faults {

/// What a send work request whose turn it is has to fail with.
std::optional<LocalError> work_request_fault(Fabric& fabric, QueuePair& qp, uint32_t index,
                                             uint64_t length);
/// A rule did with the request packet what it had to; it is not executed.
bool request_is_taken(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                      const wire::OpcodeInfo& info);
/// The errno that a call has to fail with, or 0.
int verb_fault(Fabric& fabric, ClientId client, const abi::Request& request);
int verb_fault(Fabric& fabric, const CmCommand& command);

}  // namespace faults
}  // namespace rocemu::engine
