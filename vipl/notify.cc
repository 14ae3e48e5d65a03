// VipSendNotify, VipRecvNotify and VipCQNotify, and the thread that calls their handlers.
//
// Handlers never run in the thread that registers them: that thread may hold locks of the program
// that its handler needs, and a handler that registers itself again must not be called from within
// itself.
#include "vipl/handlers.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "vipl/completion.h"

namespace rocemu::vipl {
namespace {

constexpr uint64_t kJobs = 0;  // the keys of CQs count from 1

void run_jobs(Nic& nic, Lock& lock) {
  while (!nic.jobs.empty()) {
    if (nic.dead) return nic.jobs.clear();
    Job job = std::move(nic.jobs.front());
    nic.jobs.pop_front();
    if (job.owner != nullptr && job.owner->dead) continue;
    nic.running = job.owner.get();
    lock.unlock();
    job.call();
    job.call = nullptr;
    lock.lock();
    nic.running = nullptr;
    nic.changed.notify_all();
  }
}

/// Keeps the NIC alive while its handlers run, because one of them may close it.
void run(const std::shared_ptr<Nic>& nic) {
  for (;;) {
    epoll_event events[16];
    const int count = ::epoll_wait(nic->epoll_fd, events, 16, -1);
    if (count < 0 && errno != EINTR) return;
    Lock lock(nic->mutex);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kJobs) {
        uint64_t value = 0;
        [[maybe_unused]] const ssize_t bytes = ::read(nic->jobs_fd, &value, sizeof value);
        continue;
      }
      const auto found = nic->cqs.find(events[i].data.u64);
      const auto cq = found == nic->cqs.end() ? nullptr : found->second.lock();
      if (cq == nullptr) continue;
      take_event(*cq);
      drain(*cq);
      keep_armed(*cq);
    }
    run_jobs(*nic, lock);
    if (nic->dead) return;
  }
}

}  // namespace

void start_handler_thread(Nic& nic) {
  nic.epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  nic.jobs_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_event jobs{};
  jobs.events = EPOLLIN;
  jobs.data.u64 = kJobs;
  if (nic.epoll_fd < 0 || nic.jobs_fd < 0 ||
      ::epoll_ctl(nic.epoll_fd, EPOLL_CTL_ADD, nic.jobs_fd, &jobs) != 0) {
    throw std::system_error(errno, std::generic_category());
  }
  nic.handler_thread = std::thread([self = nic.shared_from_this()] { run(self); });
}

void call_later(Nic& nic, Job job) {
  nic.jobs.push_back(std::move(job));
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(nic.jobs_fd, &one, sizeof one);
}

// Reads one event at a time, so that threads that wait for the CQ themselves do not wake this one.
void watch(Cq& cq, int operation) {
  epoll_event event{};
  event.events = operation == EPOLL_CTL_ADD ? uint32_t{EPOLLONESHOT}
                                            : uint32_t{EPOLLIN} | uint32_t{EPOLLONESHOT};
  event.data.u64 = cq.id;
  ::epoll_ctl(cq.nic->epoll_fd, operation, cq.channel->fd, &event);
}

void wait_for_handler(Nic& nic, Lock& lock, const Object& owner) {
  if (std::this_thread::get_id() == nic.handler_thread.get_id()) return;
  nic.changed.wait(lock, [&] { return nic.running != &owner; });
}

void serve(Vi& vi, WorkQueue& queue) {
  while (queue.published != 0 && !queue.handlers.empty()) {
    const WorkQueue::Handler handler = queue.handlers.front();
    queue.handlers.pop_front();
    --queue.cq->registrations;
    VIP_DESCRIPTOR* descriptor = nullptr;
    take_descriptor(queue, &descriptor);
    call_later(*vi.nic, {vis.find(vi.handle),
                         [handler, nic = vi.nic->handle, handle = vi.handle, descriptor] {
                           handler.call(handler.context, nic, handle, descriptor);
                         }});
  }
}

void serve(Cq& cq) {
  while (!cq.entries.empty() && !cq.handlers.empty()) {
    const Cq::Handler handler = cq.handlers.front();
    cq.handlers.pop_front();
    --cq.registrations;
    const VIP_VI_HANDLE vi = cq.entries.front().vi->handle;
    const VIP_BOOLEAN recv = cq.entries.front().recv ? VIP_TRUE : VIP_FALSE;
    cq.entries.pop_front();
    call_later(*cq.nic, {cqs.find(cq.handle), [handler, nic = cq.nic->handle, vi, recv] {
                           handler.call(handler.context, nic, vi, recv);
                         }});
  }
}

namespace {

VIP_RETURN notify(VIP_VI_HANDLE handle, WorkQueue Vi::*queue, VIP_PVOID context,
                  VIP_VI_CALLBACK handler) {
  return guarded([&] {
    Access<Vi> vi(vis, handle);
    if (!vi || handler == nullptr) return VIP_INVALID_PARAMETER;
    WorkQueue& wanted = (*vi).*queue;
    if (wanted.cq->visible) return VIP_ERROR_RESOURCE;
    wanted.handlers.push_back({handler, context});
    ++wanted.cq->registrations;
    // keep_armed() also polls the CQ when it arms it. If the CQ is already armed, completions since
    // then would be handled only after the event.
    if (wanted.published == 0 && wanted.cq->armed) drain(*wanted.cq);
    serve(*vi, wanted);
    keep_armed(*wanted.cq);
    return VIP_SUCCESS;
  });
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
  return notify(ViHandle, &Vi::send, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler) {
  return notify(ViHandle, &Vi::recv, Context, Handler);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler) {
  return guarded([&] {
    Access<Cq> cq(cqs, CQHandle);
    if (!cq || Handler == nullptr) return VIP_INVALID_PARAMETER;
    cq->handlers.push_back({Handler, Context});
    ++cq->registrations;
    if (cq->entries.empty() && cq->armed) drain(*cq);
    serve(*cq);
    keep_armed(*cq);
    return VIP_SUCCESS;
  });
}
