// The end of an object waits for the application to acknowledge the object's events.
#pragma once

#include <cstdint>

#include <pthread.h>

namespace rocemu::provider {

/// libibverbs counts acknowledgements and signals `cond` under `mutex`. See ibv_ack_cq_events(3):
/// destroying an object with an unacknowledged event waits.
template <class Acknowledged>
void wait_until(pthread_mutex_t* mutex, pthread_cond_t* cond, Acknowledged acknowledged) {
  pthread_mutex_lock(mutex);
  while (!acknowledged()) pthread_cond_wait(cond, mutex);
  pthread_mutex_unlock(mutex);
}

}  // namespace rocemu::provider
