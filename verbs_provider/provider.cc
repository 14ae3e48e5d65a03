// Where libibverbs comes in: which devices are ours, and what a device and its contexts can do.
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "verbs_provider/context.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/private_abi.h"
#include "verbs_provider/verbs.h"

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
  ops.advise_mr = advise_mr;
  ops.alloc_dm = alloc_dm;
  ops.alloc_mw = alloc_mw;
  ops.alloc_null_mr = alloc_null_mr;
  ops.alloc_parent_domain = alloc_parent_domain;
  ops.alloc_pd = alloc_pd;
  ops.alloc_td = alloc_td;
  ops.attach_mcast = attach_mcast;
  ops.bind_mw = bind_mw;
  ops.close_xrcd = close_xrcd;
  ops.create_ah = create_ah;
  ops.create_cq = create_cq;
  ops.create_cq_ex = create_cq_ex;
  ops.create_qp = create_qp;
  ops.create_qp_ex = create_qp_ex;
  ops.create_srq = create_srq;
  ops.create_srq_ex = create_srq_ex;
  ops.dealloc_mw = dealloc_mw;
  ops.dealloc_pd = dealloc_pd;
  ops.dealloc_td = dealloc_td;
  ops.dereg_mr = dereg_mr;
  ops.destroy_ah = destroy_ah;
  ops.destroy_cq = destroy_cq;
  ops.destroy_qp = destroy_qp;
  ops.destroy_srq = destroy_srq;
  ops.detach_mcast = detach_mcast;
  ops.free_context = free_context;
  ops.free_dm = free_dm;
  ops.get_srq_num = get_srq_num;
  ops.import_mr = import_mr;
  ops.import_pd = import_pd;
  ops.modify_cq = modify_cq;
  ops.modify_qp = modify_qp;
  ops.modify_srq = modify_srq;
  ops.open_qp = open_qp;
  ops.open_xrcd = open_xrcd;
  ops.poll_cq = poll_cq;
  ops.post_recv = post_recv;
  ops.post_send = post_send;
  ops.post_srq_recv = post_srq_recv;
  ops.query_device_ex = query_device_ex;
  ops.query_port = query_port;
  ops.query_qp = query_qp;
  ops.query_rt_values = query_rt_values;
  ops.query_srq = query_srq;
  ops.reg_dm_mr = reg_dm_mr;
  ops.reg_mr = reg_mr;
  ops.req_notify_cq = req_notify_cq;
  ops.rereg_mr = rereg_mr;
  ops.resize_cq = resize_cq;
  ops.unimport_mr = unimport_mr;
  ops.unimport_pd = unimport_pd;
  return ops;
}();

}  // namespace rocemu::provider
