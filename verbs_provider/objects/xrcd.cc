// ibv_open_xrcd(3) and ibv_close_xrcd(3).
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/structs/pd.h"
#include "verbs_provider/structs/srq.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {

/// Opens an XRC domain. "If fd equals -1, no inode is associated with the XRCD."
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  constexpr uint32_t kRequired = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr->comp_mask & ~kRequired) != 0) return fail<ibv_xrcd>(EOPNOTSUPP);
  if (attr->comp_mask != kRequired) return fail<ibv_xrcd>(EINVAL);
  abi::Request request{};
  request.op = abi::Op::kOpenXrcd;
  auto& arguments = request.body.open_xrcd;
  arguments.create = (attr->oflags & O_CREAT) != 0;
  arguments.exclusive = (attr->oflags & O_EXCL) != 0;
  if (attr->fd != -1) {
    // A direct system call is used, because the shim replaces fstat(). The daemon need not know the
    // file.
    struct stat status;
    if (system_call(SYS_fstat, attr->fd, &status) != 0) return nullptr;
    arguments.device = status.st_dev;
    arguments.inode = status.st_ino;
  }
  auto* xrcd = make<Xrcd>();
  if (xrcd == nullptr) return nullptr;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) {
    dispose(xrcd);
    return fail<ibv_xrcd>(error);
  }
  xrcd->handle = reply.body.object.handle;
  xrcd->base.context = context;
  return &xrcd->base;
}

/// Closes an XRC domain. ibv_open_xrcd(3): "may fail if any other resource is still associated with
/// the XRCD being closed." As in Linux's uverbs_free_xrcd(), each opening has its own resources,
/// whether or not the domain is open through another one.
int close_xrcd(ibv_xrcd* base) {
  Xrcd* xrcd = ours<Xrcd>(base);
  const bool in_use = xrcd->users.load(std::memory_order_acquire) != 1;
  abi::Reply reply;
  const int error = in_use ? refuse(base->context, abi::Op::kCloseXrcd, EBUSY, xrcd->handle)
                           : call_object(base->context, abi::Op::kCloseXrcd, xrcd->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  release(xrcd);
  return 0;
}

}  // namespace rocemu::provider
