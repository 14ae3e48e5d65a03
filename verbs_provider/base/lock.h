// A mutex and its guard, without the parts of the C++ library that std::mutex would load into
// programs.
#pragma once

#include <pthread.h>

#include "verbs_provider/hooks/provider_calls.h"

namespace rocemu::provider {

class Mutex {
 public:
  Mutex() = default;
  ~Mutex() { pthread_mutex_destroy(&mutex_); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    turns::holds(1);
    pthread_mutex_lock(&mutex_);
  }
  bool try_lock() {
    const bool is_locked = pthread_mutex_trylock(&mutex_) == 0;
    if (is_locked) turns::holds(1);
    return is_locked;
  }
  void unlock() {
    pthread_mutex_unlock(&mutex_);
    turns::holds(-1);
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// A mutex that does nothing if the application promised to use one thread at a time.
class OptionalMutex {
 public:
  /// Makes the mutex do nothing. Must be called before the first lock().
  void leave_out() { needed_ = false; }

  void lock() {
    if (needed_) mutex_.lock();
  }
  void unlock() {
    if (needed_) mutex_.unlock();
  }

 private:
  Mutex mutex_;
  bool needed_ = true;
};

template <class Lock>
class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace rocemu::provider
