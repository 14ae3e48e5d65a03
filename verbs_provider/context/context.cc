#include "verbs_provider/context/context.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/undefined_values.h"
#include "verbs_provider/base/valgrind.h"
#include "verbs_provider/context/device_clock.h"
#include "verbs_provider/context/region_memory.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/hooks/async_fd.h"
#include "verbs_provider/hooks/fill_errno.h"
#include "verbs_provider/shim/call.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

/// The daemon's latest answer to this thread in the current verb
thread_local int latest_answer = 0;

void close_fd(int fd) {
  if (fd >= 0) system_call(SYS_close, fd);
}

/// Opens the descriptor through which the daemon reads and writes our buffers where
/// process_vm_readv is not permitted. Returns -1 without /proc or permission: the daemon must then
/// use process_vm_readv.
int open_own_memory() {
  return static_cast<int>(
      system_call(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDWR | O_CLOEXEC));
}

/// Sends the hello to the daemon. `shared` is the connection of another context whose objects are
/// shared with this one; -1 for none.
int greet(Context* context, int shared) {
  ibv_context& base = context->context;
  abi::Request request{};
  request.op = abi::Op::kHello;
  request.body.hello.import = shared >= 0;
  abi::Reply reply;
  const int own_memory = open_own_memory();
  int sent[3];
  int n_sent = 0;
  for (const int fd : {base.cmd_fd, own_memory, shared}) {
    if (fd >= 0) sent[n_sent++] = fd;
  }
  enum { kSegment, kWake, kAsync, kCount };
  int fds[kCount];
  int error = rocemu_call(base.cmd_fd, &request, &reply, sent, n_sent, fds, kCount);
  close_fd(own_memory);
  if (error != 0) return error;

  Context::Parts& parts = context->parts;
  if (reply.body.hello.fills_undefined != 0) {
    is_undefined_filled.store(true, std::memory_order_relaxed);
    rocemu_fill_errno(kUnusableErrno);
  }
  parts.wake_fd = fds[kWake];
  parts.clock_start_ns = reply.body.hello.clock_start_ns;
  parts.wall_start_ns = reply.body.hello.wall_start_ns;
  parts.posts = reply.body.hello.posts;
  base.async_fd = fds[kAsync];
  base.num_comp_vectors = static_cast<int>(reply.body.hello.num_comp_vectors);
  const abi::SharedRange& doorbells = reply.body.hello.doorbells;
  if (fds[kSegment] < 0 || fds[kWake] < 0 || fds[kAsync] < 0 ||
      doorbells.size < sizeof(abi::DoorbellRing)) {
    error = EIO;
  } else {
    error = parts.segments.add(doorbells.segment, fds[kSegment], reply.body.hello.segment_size);
  }
  close_fd(fds[kSegment]);
  if (error == 0) error = parts.segments.find(doorbells, &parts.memory);
  const abi::SharedRange& payload = reply.body.hello.payload;
  if (error == 0 && payload.size >= sizeof(abi::Payload)) {
    error = parts.segments.find(payload, &parts.payload);
  }
  if (error != 0) return error;
  auto* ring = reinterpret_cast<abi::DoorbellRing*>(parts.memory.at(0));
  const bool takes_payload = parts.has_payload() && !runs_under_valgrind();
  ring->takes_payload.store(takes_payload ? 1 : 0, std::memory_order_relaxed);
  if (parts.has_payload()) {
    abi::CopyJobs& copies = parts.shared_payload().copies;
    copies.address.store(reinterpret_cast<uint64_t>(&copies), std::memory_order_release);
  }
  parts.doorbells.attach(ring, parts.wake_fd, base.cmd_fd);
  return 0;
}

int open_segment(ibv_context* context, uint32_t number) {
  abi::Request request{};
  request.op = abi::Op::kOpenSegment;
  request.body.open_segment.segment = number;
  abi::Reply reply;
  int fd;
  int error = rocemu_call(context->cmd_fd, &request, &reply, nullptr, 0, &fd, 1);
  if (error != 0) return error;
  Segments& segments = context_of(context)->parts.segments;
  error = fd < 0 ? EIO : segments.add(number, fd, reply.body.open_segment.size);
  close_fd(fd);
  return error;
}

/// Returns the offset of libibverbs' verbs_context in our Context, which depends on the size of the
/// verbs_context.
size_t verbs_context_offset() {
  return offsetof(Context, context) - layout.context_head;
}
verbs_context* verbs_of(Context* context) {
  return reinterpret_cast<verbs_context*>(reinterpret_cast<char*>(context) +
                                          verbs_context_offset());
}

/// Returns whether the context has the expected layout: libibverbs stores the size of its
/// verbs_context just before the ibv_context in it.
bool is_of_the_layout(const Context& context) {
  size_t size;
  memcpy(&size, reinterpret_cast<const char*>(&context.context) - sizeof(size), sizeof(size));
  return size == layout.context_head + sizeof(ibv_context);
}

/// Opens a context. From then on the context owns cmd_fd, also if this fails.
Context* open_context(ibv_device* device, int cmd_fd, int shared) {
  auto* context = static_cast<Context*>(
      _verbs_init_and_alloc_context(device, cmd_fd, sizeof(Context),
                                    reinterpret_cast<verbs_context*>(verbs_context_offset()), 0));
  if (context == nullptr) return nullptr;
  new (&context->parts) Context::Parts();
  ContextOps verbs = kContextOps;
  if (sanitizer() != nullptr) sanitizer()->wrap(&verbs, device_time_ns);
  const ContextOps ops = arranged(verbs);
  verbs_set_ops(verbs_of(context), &ops);
  const int error = is_of_the_layout(*context) ? greet(context, shared) : ENOTSUP;
  if (error == 0) return context;
  free_context(&context->context);
  return fail<Context>(error);
}

/// Returns a new connection to the device and replaces `cmd_fd` by it: two processes that sent
/// their requests over the same connection would read each other's replies.
int replace_connection(const ibv_device& device, int cmd_fd) {
  char path[sizeof(device.dev_name) + 32];
  const int length = snprintf(path, sizeof(path), "/dev/infiniband/%s", device.dev_name);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return ENAMETOOLONG;
  const int own =
      open(path, O_RDWR | O_CLOEXEC);  // the shim's open, by which libibverbs opens devices
  if (own < 0) return errno;
  const int error = dup3(own, cmd_fd, O_CLOEXEC) < 0 ? errno : 0;
  close_fd(own);
  return error;
}

}  // namespace

verbs_context* alloc_context(ibv_device* device, int cmd_fd, void*) {
  Context* context = open_context(device, cmd_fd, -1);
  return context == nullptr ? nullptr : verbs_of(context);
}

verbs_context* import_context(ibv_device* device, int cmd_fd) {
  const int shared = fcntl(cmd_fd, F_DUPFD_CLOEXEC, 0);
  const int error = shared < 0 ? errno : replace_connection(*device, cmd_fd);
  if (error != 0) {
    close_fd(shared);
    close_fd(cmd_fd);  // a failed later step closes it, too
    return fail<verbs_context>(error);
  }
  Context* context = open_context(device, cmd_fd, shared);
  close_fd(shared);
  if (context == nullptr) return nullptr;
  // libibverbs then requests the async event file of the imported context by ioctl(). The shim
  // answers with this file.
  rocemu_offer_async_fd(cmd_fd, context->context.async_fd);
  return verbs_of(context);
}

void free_context(ibv_context* base) {
  Context* context = context_of(base);
  forget_region_memory(base);
  close_fd(context->parts.wake_fd);
  context->parts.~Parts();
  verbs_uninit_context(verbs_of(context));
  free(context);
}

int call(ibv_context* context, const abi::Request& request, abi::Reply* reply) {
  return note_answer(rocemu_call(context->cmd_fd, &request, reply, nullptr, 0, nullptr, 0));
}

void forget_answer() {
  latest_answer = 0;
}

int note_answer(int error) {
  latest_answer = error;
  return error;
}

int call_object(ibv_context* context, abi::Op op, uint32_t handle, abi::Reply* reply,
                const int* send_fds, int n_send) {
  abi::Request request{};
  request.op = op;
  request.body.object.handle = handle;
  return note_answer(rocemu_call(context->cmd_fd, &request, reply, send_fds, n_send, nullptr, 0));
}

int ask_daemon(ibv_context* context, abi::Op operation, uint32_t object) {
  abi::Reply reply;
  return call_object(context, operation, object, &reply);
}

bool is_gone_with_its_device(int error) {
  if (error != EIO) return false;
  const char* allowed = getenv("RDMAV_ALLOW_DISASSOC_DESTROY");
  return allowed != nullptr && strcmp(allowed, "0") != 0;
}

int refuse(ibv_context* context, abi::Op op, int error, uint32_t object) {
  abi::Request request{};
  request.op = op;
  request.refusal = static_cast<uint16_t>(error);
  request.body.object.handle = object;
  abi::Reply reply;
  const int said = call(context, request, &reply);
  return said != 0 ? said : error;
}

int recorded_refusal(ibv_context* context, abi::Op op, int error, uint32_t object) {
  if (error <= 0 || error == latest_answer || op == abi::Op{}) return error;
  if (!is_of_this_process(context)) return error;
  // Without a device or a daemon nothing is recorded, and the provider's error is the result.
  const int said = refuse(context, op, error, object);
  return said == EIO ? error : said;
}

int call_for_memory(ibv_context* context, const abi::Request& request, abi::Reply* reply,
                    const abi::SharedRange& range, SharedPiece* memory) {
  int error = call(context, request, reply);
  if (error != 0) return error;
  Segments& segments = context_of(context)->parts.segments;
  error = segments.find(range, memory);
  if (error != ENOENT) return error;
  error = open_segment(context, range.segment);
  return error != 0 ? error : segments.find(range, memory);
}

}  // namespace rocemu::provider
