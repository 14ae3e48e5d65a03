// Objects whose destruction has started and not ended
#pragma once

#include "emulator/sanitizer/program_objects.h"
#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

/// An object that is being destroyed. It lives on the stack of the destroying thread, is registered
/// from its construction until leave(), and is guarded by the program's lock.
struct Leaving {
  Leaving(const Object& object, const CallSite& site);
  void leave();
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

  const Object* object;
  CallSite site;
  Leaving* next;
};

/// Returns the entry of an object that is being destroyed, or null for any other object.
const Leaving* find_leaving(Handle handle);

}  // namespace rocemu::sanitizer
