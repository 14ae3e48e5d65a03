// CQs: creation, resizing and destruction, and sleeping until a descriptor completes.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <climits>

#include "vipl/completion.h"
#include "vipl/handlers.h"

namespace rocemu::vipl {

Handles<Cq> cqs(3);

// The channel is destroyed after the ibv_cq: threads that still sleep on it are woken first.
Cq::~Cq() {
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  if (kick_fd >= 0) ::close(kick_fd);
}

std::shared_ptr<Cq> make_cq(const std::shared_ptr<Nic>& nic, uint32_t entries, bool visible) {
  auto cq = std::make_shared<Cq>();
  cq->nic = nic;
  cq->visible = visible;
  cq->channel = ibv_create_comp_channel(nic->context);
  cq->kick_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (cq->channel == nullptr || cq->kick_fd < 0) return nullptr;
  const int flags = ::fcntl(cq->channel->fd, F_GETFL);
  if (::fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) return nullptr;
  cq->cq = ibv_create_cq(nic->context, static_cast<int>(entries), nullptr, cq->channel, 0);
  if (cq->cq == nullptr) return nullptr;
  cq->id = ++nic->last_id;
  nic->cqs[cq->id] = cq;
  watch(*cq, EPOLL_CTL_ADD);
  return cq;
}

void close_cq(Cq& cq) {
  if (cq.dead) return;
  cq.dead = true;
  cq.handlers.clear();
  cq.entries.clear();
  cq.registrations = 0;
  watch(cq, EPOLL_CTL_DEL);
  cq.nic->cqs.erase(cq.id);
  ibv_destroy_cq(cq.cq);
  cq.cq = nullptr;
  wake_waiters(cq);
}

void take_event(Cq& cq) {
  if (cq.dead) return;
  ibv_cq* of = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(cq.channel, &of, &context) == 0) {
    ibv_ack_cq_events(of, 1);
    cq.armed = false;
  }
}

namespace {

void arm(Cq& cq) {
  if (cq.armed || cq.dead) return;
  cq.armed = ibv_req_notify_cq(cq.cq, 0) == 0;
}

/// Sleeps until the CQ has an event, another thread writes to `kick_fd`, or the deadline has
/// passed.
void sleep_on(const Cq& cq, Clock::time_point deadline) {
  pollfd entries[] = {{cq.channel->fd, POLLIN, 0}, {cq.kick_fd, POLLIN, 0}};
  ::poll(entries, 2, milliseconds_until(deadline));
}

}  // namespace

int milliseconds_until(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

void keep_armed(Cq& cq) {
  // The CQ is armed again also if no handler but a sleeping thread (the leader) needs the event: it
  // may have been read just now.
  if (cq.dead || (cq.registrations == 0 && !cq.has_leader)) return;
  if (cq.registrations != 0) watch(cq, EPOLL_CTL_MOD);
  if (cq.armed) return;
  arm(cq);
  drain(cq);  // completions from before the request cause no event
}

void wake_waiters(Cq& cq) {
  if (cq.has_leader) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(cq.kick_fd, &one, sizeof one);
  }
  cq.followers.notify_all();
}

VIP_RETURN wait_for(Lock& lock, Cq& cq, Clock::time_point deadline, bool likely_there,
                    const std::function<std::optional<VIP_RETURN>()>& ready) {
  // An empty ibv_cq is not polled without need: providers of software devices yield the processor
  // then, which is right for a thread that polls and wrong for one that is about to sleep.
  if (likely_there) drain(cq);
  for (;;) {
    if (cq.dead) return VIP_INVALID_PARAMETER;
    if (const auto result = ready()) return *result;
    if (Clock::now() >= deadline) {
      drain(cq);
      return ready().value_or(VIP_TIMEOUT);
    }
    if (cq.has_leader) {
      if (deadline == Clock::time_point::max()) {
        cq.followers.wait(lock);
      } else {
        cq.followers.wait_until(lock, deadline);
      }
      continue;
    }
    arm(cq);
    drain(cq);  // completions from before the request cause no event
    if (const auto result = ready()) return *result;
    if (cq.dead) return VIP_INVALID_PARAMETER;
    cq.has_leader = true;
    lock.unlock();
    sleep_on(cq, deadline);
    lock.lock();
    cq.has_leader = false;
    uint64_t kicks = 0;
    [[maybe_unused]] const ssize_t read_bytes = ::read(cq.kick_fd, &kicks, sizeof kicks);
    take_event(cq);
    drain(cq);
    keep_armed(cq);
    cq.followers.notify_all();  // one of them sleeps on the channel next
  }
}

}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || CQHandle == nullptr || EntryCount == 0) return VIP_INVALID_PARAMETER;
    if (EntryCount > static_cast<VIP_ULONG>(nic->device.max_cqe)) return VIP_ERROR_RESOURCE;
    const auto cq = make_cq(nic.object, static_cast<uint32_t>(EntryCount), true);
    if (cq == nullptr) return VIP_ERROR_RESOURCE;
    *CQHandle = cq->handle = cqs.add(cq);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
  return guarded([&] {
    Access<Cq> cq(cqs, CQHandle);
    if (!cq) return VIP_INVALID_PARAMETER;
    if (cq->users != 0) return VIP_ERROR_RESOURCE;
    close_cq(*cq);
    cqs.remove(CQHandle);
    wait_for_handler(*cq->nic, cq.lock, *cq);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
  return guarded([&] {
    Access<Cq> cq(cqs, CQHandle);
    if (!cq || EntryCount == 0) return VIP_INVALID_PARAMETER;
    if (EntryCount > static_cast<VIP_ULONG>(cq->nic->device.max_cqe)) return VIP_ERROR_RESOURCE;
    drain(*cq);
    if (EntryCount < cq->entries.size()) return VIP_ERROR_RESOURCE;
    const int error = ibv_resize_cq(cq->cq, static_cast<int>(EntryCount));
    return error == 0 ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
  });
}
