#include "verbs_provider/sanitizer/event_waits.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <poll.h>

#include "verbs_provider/structs/cq.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;
using turns::kernel;

/// Returns the number of completions that the program has taken, modulo 2^32.
uint32_t taken_of(const Cq& cq) {
  auto* const own = reinterpret_cast<provider::Cq*>(const_cast<void*>(cq.handle));
  const Guard guard(own->ring_lock);
  return own->ring->consumer.load(std::memory_order_acquire);
}

/// Returns the channel with that descriptor if a CQ has it, else null. The caller must hold the
/// program's lock.
const ibv_comp_channel* channel_of(Program& program, int fd) {
  const ibv_comp_channel* found = nullptr;
  program.objects().cqs.for_each([&](const Cq& cq) {
    const auto* const channel = static_cast<const ibv_comp_channel*>(cq.channel);
    if (channel != nullptr && channel->fd == fd) found = channel;
  });
  return found;
}

bool is_nonblocking(int fd) {
  const long flags = kernel(SYS_fcntl, fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) != 0;
}

bool has_no_event(int fd) {
  pollfd entry{fd, POLLIN, 0};
  const timespec now{};
  return kernel(SYS_ppoll, &entry, 1L, &now, nullptr, 0L) == 0;
}

/// Reports that the calling thread waits for an event of the channel. The caller must hold the
/// program's lock.
void begin_wait(Program& program, const ibv_comp_channel& channel, const char* call) {
  std::vector<const Cq*> cqs;
  program.objects().cqs.for_each([&](Cq& cq) {
    if (cq.channel != &channel) return;
    cq.taken = taken_of(cq);
    cqs.push_back(&cq);
  });
  std::sort(cqs.begin(), cqs.end(), [](const Cq* a, const Cq* b) { return a->number < b->number; });
  program.sanitizer().tell(EventWait{cqs, this_thread(), program.here(call, channel.context)});
}

/// If true, the thread is in ibv_get_cq_event(), which itself waits for the descriptor.
thread_local bool is_waiting = false;

}  // namespace

bool begin_event_wait(Program& program, const ibv_comp_channel& channel) {
  if (is_nonblocking(channel.fd) || !has_no_event(channel.fd)) return false;
  const Guard guard(program.lock);
  begin_wait(program, channel, "ibv_get_cq_event");
  is_waiting = true;
  return true;
}

bool begin_descriptor_wait(Program& program, int fd, const char* call) {
  if (is_waiting) return false;
  const Guard guard(program.lock);
  const ibv_comp_channel* const channel = channel_of(program, fd);
  if (channel == nullptr || !has_no_event(fd)) return false;
  begin_wait(program, *channel, call);
  is_waiting = true;
  return true;
}

void end_event_wait(Program& program) {
  is_waiting = false;
  const Guard guard(program.lock);
  program.sanitizer().tell(EventWaitEnd{this_thread()});
}

}  // namespace rocemu::sanitizer
