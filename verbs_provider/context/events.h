// The destruction of an object waits until the application has acknowledged the object's events.
#pragma once

#include <cstdint>
#include <cstdio>

#include <pthread.h>

#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/context/wait_note.h"

namespace rocemu::provider {

/// The numbers of an object's events that the application must still acknowledge before the object
/// can be destroyed
struct Unacknowledged {
  uint32_t completion = 0, async = 0;
};

/// Waits for the acknowledgements. libibverbs counts them and signals `cond` under `mutex`; see
/// ibv_ack_cq_events(3) and ibv_ack_async_event(3). `call` and `object` are names for reports:
/// "ibv_destroy_cq", "CQ". `handle` is the object.
template <class Left>
void wait_for_acknowledgements(pthread_mutex_t* mutex, pthread_cond_t* cond, const char* call,
                               const char* object, uint32_t number, const void* handle, Left left) {
  pthread_mutex_lock(mutex);
  bool waits = false;
  for (Unacknowledged events = left(); events.completion != 0 || events.async != 0;
       events = left()) {
    if (sanitizer() != nullptr && !waits)
      sanitizer()->waits_for_acknowledgements(handle, events.completion, events.async);
    waits = true;
    char text[200];
    snprintf(text, sizeof text,
             "%s: %s %u has %u completion and %u async events that were not acknowledged by %s%s%s",
             call, object, number, events.completion, events.async,
             events.completion != 0 ? "ibv_ack_cq_events" : "",
             events.completion != 0 && events.async != 0 ? " and " : "",
             events.async != 0 ? "ibv_ack_async_event" : "");
    const WaitNote note(text);
    pthread_cond_wait(cond, mutex);
  }
  pthread_mutex_unlock(mutex);
  if (sanitizer() != nullptr && waits) sanitizer()->has_acknowledgements(handle);
}

}  // namespace rocemu::provider
