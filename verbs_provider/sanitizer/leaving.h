// Objects whose destruction has begun and not ended.
#pragma once

#include "emulator/sanitizer/program_objects.h"
#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

/// On the stack of the thread that destroys, from its construction until leave(); guarded by the
/// program's lock.
struct Leaving {
  Leaving(const Object& object, const Place& place);
  void leave();
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

  const Object* object;
  Place place;
  Leaving* next;
};

/// Null if its destruction is not under way.
const Leaving* find_leaving(Handle handle);

}  // namespace rocemu::sanitizer
