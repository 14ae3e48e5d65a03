// write(2) to a device: the commands of librdmacm (event_channel.h), and one of libibverbs.
// libibverbs creates completion channels by writing a command; this is the only command that has no
// operation of the provider and no alternative if it fails.
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/syscall.h>
#include <sys/types.h>

#include "verbs_provider/shim/call.h"
#include "verbs_provider/shim/device_socket.h"
#include "verbs_provider/shim/event_channel.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/raw.h"
#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {
namespace {

Next<ssize_t(int, const void*, size_t)> next_write("write");

/// The kernel's layout: a command header, its sizes in 32-bit words, and the address for the
/// response.
struct CreateChannelCommand {
  uint32_t command;
  uint16_t in_words;
  uint16_t out_words;
  uint64_t response;  // address of a uint32_t: the new descriptor
};
static_assert(sizeof(CreateChannelCommand) == 16);
constexpr uint32_t kCreateChannelCommand = 17;

int create_channel(int fd, uint64_t response) {
  abi::Request request{};
  request.op = abi::Op::kCreateChannel;
  abi::Reply reply;
  int channel;
  const int error = rocemu_call(fd, &request, &reply, nullptr, 0, &channel, 1);
  if (error != 0) return error;
  if (channel < 0) return EIO;
  const int fault = copy_to_program(reinterpret_cast<void*>(response), &channel, sizeof(channel));
  if (fault != 0) raw_syscall(SYS_close, channel);
  return fault;
}

__attribute__((noinline)) ssize_t write_to_device(int fd, const void* data, size_t size) {
  CreateChannelCommand command;
  int error = EOPNOTSUPP;
  if (size < sizeof(command.command) + sizeof(command.in_words) + sizeof(command.out_words)) {
    error = EINVAL;
  } else if (size == sizeof(command)) {
    if (copy_from_program(&command, data, sizeof(command)) != 0) {
      error = EFAULT;
    } else if (command.command == kCreateChannelCommand && command.out_words >= 1) {
      error = create_channel(fd, command.response);
    }
  }
  if (error == 0) return static_cast<ssize_t>(size);
  errno = error;
  return -1;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(ssize_t, write, (int fd, const void* data, size_t size)) {
  DeviceNumber number;
  if (__builtin_expect(has_seen_device(), 0) && device_of_fd(fd, &number)) {
    return number.is_event_channel() ? write_to_event_channel(fd, data, size)
                                     : write_to_device(fd, data, size);
  }
  return next_write(fd, data, size);
}
