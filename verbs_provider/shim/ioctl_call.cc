// ioctl(2) of a device. libibverbs tries commands by it and takes ENOTTY, which is what a socket
// answers, for a kernel without them; but for an imported context's async event file there is no
// other way.
#include <cerrno>
#include <cstdarg>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "verbs_provider/shim/async_fd.h"
#include "verbs_provider/shim/interpose.h"

namespace rocemu::shim {
namespace {

Next<int(int, unsigned long, void*)> next_ioctl("ioctl");

struct Offer {
  int connection;
  int async_fd;
};
// Of the initial model, which needs no function to find it: we are loaded with the program.
__attribute__((tls_model("initial-exec"))) thread_local Offer offer{-1, -1};

/// Whether `header` asks for the async event file, as the only thing.
bool wants_async_fd(const ib_uverbs_ioctl_hdr& header) {
  return header.object_id == UVERBS_OBJECT_ASYNC_EVENT &&
         header.method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC && header.num_attrs == 1 &&
         header.attrs[0].attr_id == UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

extern "C" __attribute__((visibility("default"))) void rocemu_offer_async_fd(int connection,
                                                                             int async_fd) {
  offer = {connection, async_fd};
}

ROCEMU_REPLACE(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list args;
  va_start(args, request);
  void* argument = va_arg(args, void*);
  va_end(args);
  if (__builtin_expect(request == RDMA_VERBS_IOCTL, 0) && fd >= 0 && fd == offer.connection) {
    auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
    if (wants_async_fd(*header)) {
      header->attrs[0].data_s64 = offer.async_fd;
      offer = {-1, -1};
      return 0;
    }
  }
  return next_ioctl(fd, request, argument);
}
