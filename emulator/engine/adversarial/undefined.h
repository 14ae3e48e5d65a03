// The class `undefined`: values that a failure leaves undefined are replaced with a pattern.
//
// ibv_poll_cq(3): "if the completion status is other than IBV_WC_SUCCESS, only ... wr_id, status,
// qp_num, and vendor_err" are valid. IBTA vol 1, 9.5: a program may rely on the buffer of a READ,
// an atomic or a receive when the request has completed. If the request began and failed, the
// contents of the buffer are undefined. This file handles the buffers;
// emulator/abi/undefined_fields.h handles the fields of completions.
#pragma once

#include <cstdint>

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/objects/memory_table.h"
#include "emulator/engine/objects/sge_list.h"

namespace rocemu::engine::adversarial {

/// Writes the pattern into the first bytes of the buffer, at most kMaxSpoiled. A buffer to which
/// the keys permit no access is not changed.
void spoil_buffer(HostMemory& memory, const MemoryTable& regions, PdId pd, const SgeList& buffer,
                  uint64_t length);

inline constexpr uint64_t kMaxSpoiled = 65536;
inline constexpr uint8_t kUndefinedByte = 0x5a;  // as in the fields of completions

}  // namespace rocemu::engine::adversarial
