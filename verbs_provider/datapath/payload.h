// Payload beside a completion (abi::PayloadSlot)
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// The page that was last found to be writable. The check takes a system call, and the buffers of
/// consecutive completions are often in one page. Must not be kept beyond one call of the program,
/// because the program may unmap the page between two calls.
struct WritablePage {
  uint64_t number = UINT64_MAX;
};

/// Copies the payload to the receive buffer, when the completion is taken from that place in the
/// CQ. If the program has unmapped the buffer, the payload is dropped, as with a NIC. Returns when
/// all of it has been written, even if the daemon is writing it at that time.
void receive_payload(Context::Parts& parts, uint32_t cq, uint32_t index, const abi::Cqe& cqe,
                     WritablePage& known);

}  // namespace rocemu::provider
