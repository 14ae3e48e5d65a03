// Replaces ioctl(2) of devices and of userfaultfds. libibverbs tries commands by ioctl; it takes
// ENOTTY, with which a socket answers, for the answer of a kernel without these commands. Only the
// async event file of an imported context cannot be obtained in another way. The ioctl of a
// userfaultfd is intercepted because the daemon may have to wait for memory that is registered
// there.
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include <linux/userfaultfd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "verbs_provider/hooks/async_fd.h"
#include "verbs_provider/hooks/blocking_memory.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {
namespace {

Next<int(int, unsigned long, void*)> next_ioctl("ioctl");

struct Offer {
  int connection;
  int async_fd;
};
// The initial-exec model needs no function call to find the variable; it is possible because this
// library is loaded with the program.
__attribute__((tls_model("initial-exec"))) thread_local Offer offer{-1, -1};

/// `memory_may_block` is true if memory was registered with a userfaultfd. `tell_of_memory` is
/// called before each such registration.
constinit std::atomic<bool> memory_may_block{false};
constinit std::atomic<void (*)()> tell_of_memory{nullptr};

/// A command with one attribute, which follows its header.
struct Command {
  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes); }
  ib_uverbs_attr& attribute() { return header().attrs[0]; }

  alignas(ib_uverbs_ioctl_hdr) char bytes[sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)];
};

/// Returns whether the command asks for the async event file, and nothing else.
bool wants_async_fd(Command& command) {
  return command.header().object_id == UVERBS_OBJECT_ASYNC_EVENT &&
         command.header().method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC &&
         command.header().num_attrs == 1 &&
         command.attribute().attr_id == UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
}

/// Answers the command with the offered file if it asks for the async event file. Returns whether
/// it has been answered.
bool take_offer(void* argument) {
  Command command;
  if (copy_from_program(command.bytes, argument, sizeof(command.bytes)) != 0) return false;
  if (!wants_async_fd(command)) return false;
  command.attribute().data_s64 = offer.async_fd;
  if (copy_to_program(argument, command.bytes, sizeof(command.bytes)) != 0) return false;
  offer = {-1, -1};
  return true;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

extern "C" __attribute__((visibility("default"))) void rocemu_offer_async_fd(int connection,
                                                                             int async_fd) {
  offer = {connection, async_fd};
}

extern "C" __attribute__((visibility("default"))) bool rocemu_watch_memory(void (*told)()) {
  tell_of_memory = told;
  return memory_may_block;
}

ROCEMU_REPLACE(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list args;
  va_start(args, request);
  void* argument = va_arg(args, void*);
  va_end(args);
  if (__builtin_expect(request == RDMA_VERBS_IOCTL, 0) && fd >= 0 && fd == offer.connection) {
    if (take_offer(argument)) return 0;
  }
  // The provider is notified before the registration; afterwards it may be too late.
  if (__builtin_expect(request == UFFDIO_REGISTER, 0)) {
    const int error = errno;
    memory_may_block = true;
    if (void (*tell)() = tell_of_memory) tell();
    errno = error;
  }
  return next_ioctl(fd, request, argument);
}
