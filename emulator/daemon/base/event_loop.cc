#include "emulator/daemon/base/event_loop.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <new>
#include <span>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    reset();
    loop_ = std::exchange(other.loop_, nullptr);
    fd_ = std::exchange(other.fd_, -1);
    token_ = std::exchange(other.token_, 0);
  }
  return *this;
}

void EventLoop::Watch::set_events(uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token_;
  epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, fd_, &event);
}

void EventLoop::Watch::reset() {
  if (loop_ == nullptr) return;
  epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  loop_->callbacks_.erase(token_);
  loop_ = nullptr;
}

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail_start("epoll_create1", errno);
}

EventLoop::Watch EventLoop::watch(int fd, uint32_t events, Callback callback) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = ++last_token_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return {};
  callbacks_.emplace(last_token_, std::make_shared<Callback>(std::move(callback)));
  Watch watch;
  watch.loop_ = this;
  watch.fd_ = fd;
  watch.token_ = last_token_;
  return watch;
}

int EventLoop::wait(std::optional<engine::Duration> timeout) {
  std::array<epoll_event, 256> events;
  const int count = wait_for_events(events.data(), static_cast<int>(events.size()), timeout);
  // Callbacks run in the order in which the descriptors were added, not in which they became ready.
  std::sort(events.begin(), events.begin() + std::max(count, 0),
            [](const auto& a, const auto& b) { return a.data.u64 < b.data.u64; });
  bool is_out_of_memory = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const auto found = callbacks_.find(event.data.u64);
    if (found == callbacks_.end()) continue;
    const std::shared_ptr<Callback> callback = found->second;  // it may destroy its own Watch
    try {
      (*callback)(event.events);
    } catch (const std::bad_alloc&) {
      // The exception is thrown after the other callbacks have run, since some descriptors report
      // an event only once.
      is_out_of_memory = true;
    }
  }
  if (is_out_of_memory) throw std::bad_alloc();
  return std::max(count, 0);
}

bool EventLoop::run_first(uint32_t wanted) {
  std::array<epoll_event, 256> events;
  const int count =
      wait_for_events(events.data(), static_cast<int>(events.size()), engine::Duration(0));
  const epoll_event* first = nullptr;
  for (const epoll_event& event :
       std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
    if ((event.events & wanted) == 0) continue;
    if (first == nullptr || event.data.u64 < first->data.u64) first = &event;
  }
  if (first == nullptr) return false;
  if (const auto found = callbacks_.find(first->data.u64); found != callbacks_.end()) {
    const std::shared_ptr<Callback> callback = found->second;
    (*callback)(first->events);
  }
  return true;
}

int EventLoop::wait_for_events(epoll_event* events, int count,
                               std::optional<engine::Duration> timeout) {
  if (timeout && timeout->count() <= 0) return epoll_wait(epoll_.get(), events, count, 0);
  if (!timeout) return epoll_wait(epoll_.get(), events, count, -1);
#ifdef SYS_epoll_pwait2
  // epoll_pwait2() is called without the C library: Linux has it since 5.11, but glibc only since
  // 2.35.
  if (has_pwait2_) {
    constexpr engine::Duration::rep kBillion = 1'000'000'000;
    const timespec time{static_cast<time_t>(timeout->count() / kBillion),
                        static_cast<long>(timeout->count() % kBillion)};
    const long result =
        syscall(SYS_epoll_pwait2, epoll_.get(), events, count, &time, nullptr, size_t{0});
    if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(result);
    has_pwait2_ = false;
  }
#endif
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*timeout).count();
  return epoll_wait(epoll_.get(), events, count,
                    static_cast<int>(std::min<decltype(milliseconds)>(milliseconds, INT_MAX)));
}

}  // namespace rocemu::daemon
