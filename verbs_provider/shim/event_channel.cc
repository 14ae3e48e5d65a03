#include "verbs_provider/shim/event_channel.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "emulator/abi/runtime_dir.h"
#include "emulator/abi/ucma.h"
#include "verbs_provider/hooks/fill_errno.h"
#include "verbs_provider/hooks/note_call.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/shim/device_socket.h"
#include "verbs_provider/shim/messages.h"
#include "verbs_provider/system/raw.h"
#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {
namespace {

using abi::ucma::Command;

/// The errno after a successful command; 0: errno does not change.
std::atomic<int> errno_of_success{0};

/// The header of every command.
struct KernelHeader {
  uint32_t command;
  uint16_t in_size;
  uint16_t out_size;
};
static_assert(sizeof(KernelHeader) == 8);

/// The properties of a command that the shim needs.
struct Shape {
  int16_t size;           // of its struct; a shorter command is refused
  int16_t response = -1;  // offset of the response's address
};

constexpr Shape shape_of(Command command) {
  namespace ucma = abi::ucma;
  constexpr auto shape = [](size_t size, int response = -1) {
    return Shape{static_cast<int16_t>(size), static_cast<int16_t>(response)};
  };
  switch (command) {
    case Command::kCreateId:
      return shape(sizeof(ucma::CreateId), offsetof(ucma::CreateId, response));
    case Command::kDestroyId:
    case Command::kLeaveMcast:
      return shape(sizeof(ucma::DestroyId), 0);
    case Command::kMigrateId:
      return shape(sizeof(ucma::MigrateId), 0);
    case Command::kBindIp:
      return shape(sizeof(ucma::BindIp));
    case Command::kResolveIp:
      return shape(sizeof(ucma::ResolveIp));
    case Command::kResolveRoute:
      return shape(sizeof(ucma::ResolveRoute));
    case Command::kQueryRoute:
    case Command::kQuery:
      return shape(sizeof(ucma::Query), 0);
    case Command::kConnect:
      return shape(offsetof(ucma::Connect, ece));
    case Command::kListen:
      return shape(sizeof(ucma::Listen));
    case Command::kAccept:
      return shape(offsetof(ucma::Accept, ece));
    case Command::kReject:
      return shape(sizeof(ucma::Reject));
    case Command::kDisconnect:
      return shape(sizeof(ucma::Disconnect));
    case Command::kInitQpAttr:
      return shape(sizeof(ucma::InitQpAttr), 0);
    case Command::kGetEvent:
      return shape(sizeof(ucma::GetEvent), 0);
    case Command::kSetOption:
      return shape(sizeof(ucma::SetOption));
    case Command::kNotify:
      return shape(sizeof(ucma::Notify));
    case Command::kJoinIpMcast:
      return shape(sizeof(ucma::JoinIpMcast), 0);
    case Command::kBind:
      return shape(sizeof(ucma::Bind));
    case Command::kResolveAddr:
      return shape(sizeof(ucma::ResolveAddr));
    case Command::kJoinMcast:
      return shape(sizeof(ucma::JoinMcast), 0);
    case Command::kResolveIbService:
      return shape(sizeof(ucma::ResolveIbService));
    case Command::kWriteCmEvent:
      return shape(sizeof(ucma::WriteCmEvent));
    case Command::kGetOption:
    case Command::kOpenChannel:
      break;
  }
  return shape(0);
}

/// The fields of a command that the shim itself reads are within the first kOwnPart bytes.
constexpr size_t kOwnPart = 32;
static_assert(sizeof(abi::ucma::SetOption) <= kOwnPart &&
              sizeof(abi::ucma::MigrateId) <= kOwnPart && sizeof(abi::ucma::GetEvent) <= kOwnPart &&
              offsetof(abi::ucma::CreateId, response) + sizeof(uint64_t) <= kOwnPart);

/// A command of librdmacm that is being executed
struct Call {
  int fd;
  Command command;
  Shape shape;
  const char* in;  // in_size bytes of the application's
  size_t in_size;
  size_t out_size;
  char own_part[kOwnPart];  // the first bytes

  template <class Arguments>
  Arguments arguments() const {
    Arguments arguments;
    memcpy(&arguments, own_part, sizeof(arguments));
    return arguments;
  }
};

int open_pair(int (&pair)[2]) {
  return static_cast<int>(
      -raw_syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
}

/// Checks the descriptor of the channel that an id will leave. Returns 0, ENOENT if there is no
/// such descriptor, or EINVAL if it is not an event channel.
int check_old_channel(int fd) {
  DeviceNumber number;
  if (raw_syscall(SYS_fcntl, fd, F_GETFD) < 0) return ENOENT;
  return device_of_fd(fd, &number) && number.is_event_channel() ? 0 : EINVAL;
}

/// Sends the command with its data and descriptors; `pair[1]` goes to the daemon. The kernel copies
/// the rest of a command and the value of an option, and fails with EFAULT if the application's
/// address is bad.
int send_command(const Call& call, const int (&pair)[2]) {
  const char* value = nullptr;
  size_t value_size = 0;
  int fds[3] = {pair[1], call.fd, -1};
  int fd_count = 2;
  if (call.command == Command::kSetOption) {
    const auto option = call.arguments<abi::ucma::SetOption>();
    value = reinterpret_cast<const char*>(option.value);
    value_size = option.length;
    if (call.in_size + value_size > abi::ucma::kMaxCommand) return EINVAL;
  } else if (call.command == Command::kMigrateId) {
    const auto migration = call.arguments<abi::ucma::MigrateId>();
    fds[fd_count++] = static_cast<int>(migration.fd);
    if (const int error = check_old_channel(fds[2]); error != 0) return error;
  }
  abi::ucma::CommandHeader header{abi::ucma::kMagic, abi::ucma::kVersion, call.command,
                                  static_cast<uint32_t>(call.in_size + value_size),
                                  static_cast<uint32_t>(call.out_size)};
  iovec parts[] = {{&header, sizeof(header)},
                   {const_cast<char*>(call.in), call.in_size},
                   {const_cast<char*>(value), value_size}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  ControlBuffer control;
  control.attach(&message, fds, fd_count);
  const long sent = complete(
      call.fd, POLLOUT, [&] { return raw_syscall(SYS_sendmsg, call.fd, &message, MSG_NOSIGNAL); });
  if (sent == -EFAULT || sent == -ENOMEM || sent == -ENOBUFS) return static_cast<int>(-sent);
  return sent < 0 ? EIO : 0;
}

/// Receives the reply, and stores the response at the application's address. Returns EFAULT if that
/// is not possible.
int receive_reply(int fd, void* response, size_t room) {
  abi::ucma::ReplyHeader header;
  iovec parts[] = {{&header, sizeof(header)}, {response, room}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const turns::WaitForReply waits;
  const long size = complete(fd, POLLIN, [&] { return raw_syscall(SYS_recvmsg, fd, &message, 0); });
  if (size == -EFAULT) return EFAULT;
  if (size < static_cast<long>(sizeof(header)) || header.magic != abi::ucma::kMagic ||
      header.version != abi::ucma::kVersion) {
    return EIO;
  }
  return header.error;
}

int run_command(const Call& call) {
  if (call.in_size > abi::ucma::kMaxCommand) return EINVAL;
  int pair[2];
  if (const int error = open_pair(pair); error != 0) return error;
  note_call(call.command);
  int error = send_command(call, pair);
  raw_syscall(SYS_close, pair[1]);
  if (error == 0) {
    uint64_t response = 0;
    size_t room = 0;
    if (call.shape.response >= 0) {
      memcpy(&response, call.own_part + call.shape.response, sizeof(response));
      room = call.out_size;
    }
    error = receive_reply(pair[0], reinterpret_cast<void*>(response), room);
  }
  raw_syscall(SYS_close, pair[0]);
  return error;
}

/// Reports that a connect request was read, since the daemon counts unread requests for the
/// listener's backlog. The message has no descriptor and no reply, so that it can fail only if the
/// daemon has ended.
void tell_request_was_read(int fd, uint32_t id) {
  struct {
    abi::ucma::CommandHeader header;
    abi::ucma::RequestRead request;
  } message{{abi::ucma::kMagic, abi::ucma::kVersion, Command::kGetEvent,
             sizeof(abi::ucma::RequestRead), 0},
            {id}};
  complete(fd, POLLOUT, [&] {
    return raw_syscall(SYS_sendto, fd, &message, sizeof(message), MSG_NOSIGNAL, nullptr, 0);
  });
}

/// Gets an event. This is a cancellation point, so it must not have state of ours that would have
/// to be undone.
int get_event(const Call& call) {
  if (call.out_size < abi::ucma::kMinEventResponse) return ENOSPC;
  const auto arguments = call.arguments<abi::ucma::GetEvent>();
  const size_t room = call.out_size < sizeof(abi::ucma::EventResponse)
                          ? call.out_size
                          : sizeof(abi::ucma::EventResponse);
  auto* response = reinterpret_cast<abi::ucma::EventResponse*>(arguments.response);
  const ssize_t size = recv(call.fd, response, room, 0);
  if (size < 0) return errno == ECONNRESET ? EIO : errno;
  if (size == 0) return EIO;  // the daemon has ended
  // The event remains in the program's response, like the kernel's data after a failure.
  if (response->event == abi::ucma::EventType::kGetEventFailed) {
    return static_cast<int>(response->status);
  }
  if (room == sizeof(*response)) response->reserved = 0;
  if (response->event == abi::ucma::EventType::kConnectRequest) {
    tell_request_was_read(call.fd, response->id);
  }
  return 0;
}

/// Returns the name of the librdmacm function that begins by sending the command.
const char* public_name(Command command) {
  if (command == Command::kGetEvent) return "rdma_get_cm_event";
  switch (command) {
#define ROCEMU_PUBLIC_NAME(id, name, value) \
  case Command::id:                         \
    return "rdma_" #name;
    ROCEMU_CM_COMMANDS(ROCEMU_PUBLIC_NAME)
#undef ROCEMU_PUBLIC_NAME
  }
  return "";
}

/// Fills in the source of a connection that has none: with `rocemu run --host` it is the host's
/// address. `copy` gets the changed command.
template <class Resolve>
void fill_in_source(Call& call, Resolve& copy) {
  const char* const text = secure_getenv(abi::kHostAddressVariable);
  sockaddr_in source{};
  source.sin_family = AF_INET;
  if (text == nullptr || inet_pton(AF_INET, text, &source.sin_addr) != 1) return;
  if (copy_from_program(&copy, call.in, sizeof(copy)) != 0) return;
  sa_family_t given = 0, destination = 0;
  memcpy(&given, copy.source.bytes, sizeof(given));
  memcpy(&destination, copy.destination.bytes, sizeof(destination));
  if (destination != AF_INET) return;
  if constexpr (requires { copy.source_size; }) {
    if (copy.source_size != 0) return;
    copy.source_size = sizeof(source);
  } else if (given != 0) {
    return;
  }
  memcpy(copy.source.bytes, &source, sizeof(source));
  call.in = reinterpret_cast<const char*>(&copy);
  call.in_size = sizeof(copy);
}

int execute(int fd, const char* data, size_t size) {
  KernelHeader header;
  if (size < sizeof(header)) return EINVAL;
  if (const int error = copy_from_program(&header, data, sizeof(header)); error != 0) return error;
  if (header.command >= abi::ucma::kKernelCommands) return EINVAL;
  if (header.in_size + sizeof(header) > size) return EINVAL;
  const auto command = static_cast<Command>(header.command);
  Call call{fd, command, shape_of(command), data + sizeof(header), header.in_size, header.out_size,
            {}};
  if (call.shape.size == 0) return ENOSYS;
  // The kernel ignores the size and reads the fields at their addresses.
  if (call.in_size < static_cast<size_t>(call.shape.size)) return EINVAL;
  const size_t own_size = call.in_size < kOwnPart ? call.in_size : kOwnPart;
  if (const int error = copy_from_program(call.own_part, call.in, own_size); error != 0) {
    return error;
  }
  abi::ucma::ResolveIp resolve_ip;
  abi::ucma::ResolveAddr resolve_addr;
  if (command == Command::kResolveIp) fill_in_source(call, resolve_ip);
  if (command == Command::kResolveAddr) fill_in_source(call, resolve_addr);
  const int error = command == Command::kGetEvent ? get_event(call) : run_command(call);
  turns::after_call(public_name(command));
  return error;
}

}  // namespace

int ask_to_open_event_channel(int fd) {
  return run_command({fd, Command::kOpenChannel, {}, nullptr, 0, 0, {}});
}

ssize_t write_to_event_channel(int fd, const void* data, size_t size) {
  const int saved = errno;
  const int error = execute(fd, static_cast<const char*>(data), size);
  const int filled = errno_of_success.load(std::memory_order_relaxed);
  const int after_success = filled != 0 ? filled : saved;
  errno = error != 0 ? error : after_success;
  return error != 0 ? -1 : static_cast<ssize_t>(size);
}

}  // namespace rocemu::shim

extern "C" __attribute__((visibility("default"))) void rocemu_fill_errno(int value) {
  rocemu::shim::errno_of_success.store(value, std::memory_order_relaxed);
}
