#include "verbs_provider/sanitizer/leaving.h"

namespace rocemu::sanitizer {
namespace {

Leaving* first_leaving = nullptr;

}  // namespace

Leaving::Leaving(const Object& one, const CallSite& at)
    : object(&one), site(at), next(first_leaving) {
  first_leaving = this;
}

void Leaving::leave() {
  Leaving** link = &first_leaving;
  while (*link != this) link = &(*link)->next;
  *link = next;
}

const Leaving* find_leaving(Handle handle) {
  for (const Leaving* one = first_leaving; one != nullptr; one = one->next)
    if (one->object->handle == handle) return one;
  return nullptr;
}

}  // namespace rocemu::sanitizer
