// Changes of the pages of registered memory. They come from within the program's munmap(2) and the
// like, perhaps in the middle of its allocator: so they are only noted then, without memory of that
// allocator or a lock, and looked at with the program's next verb.
#pragma once

#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

void on_mapping_change(ibv_context* context, uint64_t begin, uint64_t end, abi::MappingCall call);

/// Looks at what was noted. Under the program's lock.
void take_mapping_changes(Program& program);

}  // namespace rocemu::sanitizer
