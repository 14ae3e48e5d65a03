// Where libibverbs comes in: which devices are ours, and what a device and its contexts can do.
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "verbs_provider/base/context.h"
#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/verb.h"
#include "verbs_provider/base/verbs.h"

namespace rocemu::provider {
namespace {

/// uverbsN/abi_version in the daemon's sysfs tree.
constexpr uint32_t kDeviceAbiVersion = 1;

/// The daemon's devices have any name, but this adapter type.
bool match_device(SysfsDevice* device) {
  constexpr char kType[] = "rocemu\n";
  char path[sizeof(device->ibdev_path) + 16];
  const int length = snprintf(path, sizeof(path), "%s/hca_type", device->ibdev_path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char type[sizeof(kType)];
  const ssize_t size = read(fd, type, sizeof(type));
  close(fd);
  return size == static_cast<ssize_t>(strlen(kType)) && memcmp(type, kType, strlen(kType)) == 0;
}

VerbsDevice* alloc_device(SysfsDevice*) {
  return make<VerbsDevice>();
}

void uninit_device(VerbsDevice* device) {
  dispose(device);
}

constexpr DeviceOps kDeviceOps = {
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

__attribute__((constructor)) void register_provider() {
  verbs_register_driver_34(&kDeviceOps);
}

}  // namespace

constinit const ContextOps kContextOps = [] {
  ContextOps ops{};
  ops.advise_mr = verb<advise_mr>;
  ops.alloc_dm = verb<alloc_dm, InChild::kWorks>;
  ops.alloc_mw = verb<alloc_mw>;
  ops.alloc_null_mr = verb<alloc_null_mr>;
  ops.alloc_parent_domain = verb<alloc_parent_domain>;
  ops.alloc_pd = verb<alloc_pd>;
  ops.alloc_td = verb<alloc_td>;
  ops.attach_mcast = verb<attach_mcast>;
  ops.bind_mw = verb<bind_mw>;
  ops.close_xrcd = verb<close_xrcd>;
  ops.create_ah = verb<create_ah>;
  ops.create_cq = verb<create_cq>;
  ops.create_cq_ex = verb<create_cq_ex>;
  ops.create_qp = verb<create_qp>;
  ops.create_qp_ex = verb<create_qp_ex>;
  ops.create_srq = verb<create_srq>;
  ops.create_srq_ex = verb<create_srq_ex>;
  ops.dealloc_mw = verb<dealloc_mw>;
  ops.dealloc_pd = verb<dealloc_pd>;
  ops.dealloc_td = verb<dealloc_td>;
  ops.dereg_mr = verb<dereg_mr>;
  ops.destroy_ah = verb<destroy_ah>;
  ops.destroy_cq = verb<destroy_cq>;
  ops.destroy_qp = verb<destroy_qp>;
  ops.destroy_srq = verb<destroy_srq>;
  ops.detach_mcast = verb<detach_mcast>;
  ops.free_context = verb<free_context, InChild::kWorks>;
  ops.free_dm = verb<free_dm, InChild::kWorks>;
  ops.get_srq_num = verb<get_srq_num, InChild::kWorks>;
  ops.import_mr = verb<import_mr>;
  ops.import_pd = verb<import_pd>;
  ops.modify_cq = verb<modify_cq>;
  ops.modify_qp = verb<modify_qp>;
  ops.modify_srq = verb<modify_srq>;
  ops.open_qp = verb<open_qp>;
  ops.open_xrcd = verb<open_xrcd>;
  ops.poll_cq = poll_cq;  // returns how many
  ops.post_recv = verb<post_recv>;
  ops.post_send = verb<post_send>;
  ops.post_srq_recv = verb<post_srq_recv>;
  ops.query_device_ex = verb<query_device_ex, InChild::kWorks>;
  ops.query_port = verb<query_port, InChild::kWorks>;
  ops.query_qp = verb<query_qp, InChild::kWorks>;
  ops.query_rt_values = verb<query_rt_values>;
  ops.query_srq = verb<query_srq, InChild::kWorks>;
  ops.reg_dm_mr = verb<reg_dm_mr>;
  ops.reg_mr = verb<reg_mr>;
  ops.req_notify_cq = verb<req_notify_cq>;
  ops.rereg_mr = verb<rereg_mr>;
  ops.resize_cq = verb<resize_cq>;
  ops.unimport_mr = verb<unimport_mr, InChild::kWorks>;
  ops.unimport_pd = verb<unimport_pd, InChild::kWorks>;
  return ops;
}();

}  // namespace rocemu::provider
