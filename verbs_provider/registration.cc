// Registers the provider. This file is compiled once for each private ABI of libibverbs,
// ROCEMU_PRIVATE_ABI: the plugins differ only in their registration.
#include "verbs_provider/base/layout.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/provider.h"

// The number is in the name, so that a plugin cannot be linked to a libibverbs with another ABI.
#define ROCEMU_JOIN(name, number) name##number
#define ROCEMU_NUMBERED(name, number) ROCEMU_JOIN(name, number)
#define verbs_register_driver ROCEMU_NUMBERED(verbs_register_driver_, ROCEMU_PRIVATE_ABI)

extern "C" void verbs_register_driver(const rocemu::provider::DeviceOps* ops);

namespace rocemu::provider {
namespace {

__attribute__((constructor)) void register_provider() {
  const auto* registration = reinterpret_cast<const void*>(&verbs_register_driver);
  if (recognize_libibverbs(registration)) verbs_register_driver(&kDeviceOps);
}

}  // namespace
}  // namespace rocemu::provider
