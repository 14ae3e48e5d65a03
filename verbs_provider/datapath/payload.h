// Takes payload that the daemon has stored beside a completion (abi::PayloadSlot)
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

/// Copies the payload of the completion that was taken from place `index` of the CQ to the receive
/// buffer. If the program has unmapped the buffer, the payload is dropped, as with a NIC. Returns
/// only when the whole payload has been written, also if the daemon is writing it.
void receive_payload(Context::Parts& parts, uint32_t cq, uint32_t index, const abi::Cqe& cqe,
                     WritablePage& known);

}  // namespace rocemu::provider
