// Changes of the pages of registered memory. They are reported from within the program's munmap(2)
// and similar calls, perhaps in the middle of its allocator. They are therefore only recorded then,
// without memory of that allocator or a lock, and are processed with the program's next verb.
#pragma once

#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

void on_mapping_change(ibv_context* context, uint64_t begin, uint64_t end, abi::MappingCall call);

/// Processes the recorded changes. The caller must hold the program's lock.
void take_mapping_changes(Program& program);

}  // namespace rocemu::sanitizer
