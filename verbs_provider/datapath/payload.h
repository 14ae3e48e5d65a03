// Payload that lies beside a completion (abi::PayloadSlot).
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// The page that was last found to be writable. To find out takes a system call, and the buffers of
/// completions in a row are often of one page. Not to be kept beyond a call of the program, which
/// may unmap the page between two.
struct WritablePage {
  uint64_t number = UINT64_MAX;
};

/// Copies it to the receive buffer, when the completion is taken from that place in the CQ. Where
/// the program has unmapped the buffer it goes nowhere, as with a NIC. Returns when all of it is
/// there, also if the daemon is just writing it.
void receive_payload(Context::Parts& parts, uint32_t cq, uint32_t index, const abi::Cqe& cqe,
                     WritablePage& known);

}  // namespace rocemu::provider
