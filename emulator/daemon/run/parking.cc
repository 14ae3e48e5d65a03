#include "emulator/daemon/run/parking.h"

namespace rocemu::daemon {

void Parking::wait_until_parked() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return parked_; });
}

void Parking::release() {
  {
    const std::lock_guard lock(mutex_);
    asked_.store(false, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

void Parking::park() {
  std::unique_lock lock(mutex_);
  if (!is_asked()) return;
  parked_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !is_asked(); });
  parked_ = false;
}

}  // namespace rocemu::daemon
