// Tells the parts of the provider that tests use without a plugin about the machine's libibverbs,
// as a plugin does when it is loaded.
#include <infiniband/verbs.h>

#include <cstdlib>

#include "verbs_provider/base/layout.h"

namespace rocemu::provider {
namespace {

__attribute__((constructor)) void recognize() {
  if (!recognize_libibverbs(reinterpret_cast<const void*>(&ibv_get_device_list))) abort();
}

}  // namespace
}  // namespace rocemu::provider
