#include "verbs_provider/sanitizer/event_waits.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

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

pthread_key_t end_key;  // whose destructor runs when a thread ends
pthread_once_t end_once = PTHREAD_ONCE_INIT;

void end_wait(Program& program, bool has_thread_ended) {
  is_waiting = false;
  const Guard guard(program.lock);
  program.sanitizer().tell(EventWaitEnd{this_thread(), has_thread_ended});
}

void end_of_thread(void* program) {
  if (is_waiting) end_wait(*static_cast<Program*>(program), /*has_thread_ended=*/true);
}

void watch_end_of_thread(Program& program) {
  pthread_once(&end_once, [] { pthread_key_create(&end_key, end_of_thread); });
  pthread_setspecific(end_key, &program);
}

}  // namespace

bool begin_event_wait(Program& program, const ibv_comp_channel& channel) {
  if (is_nonblocking(channel.fd) || !has_no_event(channel.fd)) return false;
  watch_end_of_thread(program);
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
  watch_end_of_thread(program);
  begin_wait(program, *channel, call);
  is_waiting = true;
  return true;
}

void end_event_wait(Program& program) {
  end_wait(program, /*has_thread_ended=*/false);
}

void count_what_is_left(Program& program) {
  program.objects().cqs.for_each([](Cq& cq) {
    auto* const own = reinterpret_cast<provider::Cq*>(const_cast<void*>(cq.handle));
    if (!own->ring_lock.try_lock()) return;  // a thread may have ended while it held the lock
    cq.taken = own->ring->consumer.load(std::memory_order_acquire);
    cq.left_at_end = own->ring->producer.load(std::memory_order_acquire) - cq.taken;
    own->ring_lock.unlock();
  });
}

}  // namespace rocemu::sanitizer
