// The entry points of libibverbs: recognizing devices, and the operations of a device and its
// contexts
#include "verbs_provider/provider.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/verb.h"

namespace rocemu::provider {
namespace {

/// The content of uverbsN/abi_version in the daemon's sysfs tree
constexpr uint32_t kDeviceAbiVersion = 1;

/// Returns whether the device is one of the daemon's. Such devices can have any name, but they have
/// the adapter type "rocemu" or, if they emulate another NIC, the file that names their profile.
/// With `rocemu run --host` there is only one of them.
bool match_device(SysfsDevice* device) {
  const char* const only = secure_getenv(abi::kHostDeviceVariable);
  if (only != nullptr && strcmp(device->ibdev_name, only) != 0) return false;
  constexpr char kType[] = "rocemu\n";
  char path[sizeof(device->ibdev_path) + sizeof(abi::kProfileFile)];
  int length = snprintf(path, sizeof(path), "%s/%s", device->ibdev_path, abi::kProfileFile);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return false;
  if (access(path, F_OK) == 0) return true;
  length = snprintf(path, sizeof(path), "%s/hca_type", device->ibdev_path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char type[sizeof(kType)];
  const ssize_t size = read(fd, type, sizeof(type));
  close(fd);
  return size == static_cast<ssize_t>(strlen(kType)) && memcmp(type, kType, strlen(kType)) == 0;
}

/// IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS (rdma/ib_user_ioctl_verbs.h): without it libibverbs
/// drops flags such as IBV_ACCESS_RELAXED_ORDERING before it calls this provider's ibv_reg_mr().
constexpr uint64_t kOptionalAccess = 1;

VerbsDevice* alloc_device(SysfsDevice*) {
  auto* device = make<VerbsDevice>();
  if (device != nullptr) device->core_support = kOptionalAccess;
  return device;
}

void uninit_device(VerbsDevice* device) {
  dispose(device);
}

}  // namespace

constinit const DeviceOps kDeviceOps = {
    .name = "rocemu",
    .match_min_abi_version = kDeviceAbiVersion,
    .match_max_abi_version = kDeviceAbiVersion,
    .match_table = nullptr,
    .static_providers = nullptr,
    .match_device = match_device,
    .alloc_context = alloc_context,
    .import_context = import_context,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};

constinit const ContextOps kContextOps = [] {
  ContextOps ops{};
#define ROCEMU_PROVIDE_VERB(name, in_child) ops.name = verb<name, InChild::in_child, #name>;
  ROCEMU_VERBS(ROCEMU_PROVIDE_VERB)
#undef ROCEMU_PROVIDE_VERB
  ops.poll_cq = poll_cq;  // returns a number
  return ops;
}();

}  // namespace rocemu::provider
