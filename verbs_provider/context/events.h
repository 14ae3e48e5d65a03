// The destruction of an object waits until the application has acknowledged the object's events.
#pragma once

#include <cstdint>
#include <cstdio>

#include <pthread.h>

#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/context/wait_note.h"

namespace rocemu::provider {

/// The numbers of an object's events that the application must still acknowledge before the object
/// can be destroyed. Negative if it acknowledged more events than it received.
struct Unacknowledged {
  int32_t completion = 0, async = 0;
};

/// Returns the difference of two counters of events, which wrap after 2^32 events.
constexpr int32_t still_unacknowledged(uint32_t received, uint32_t acknowledged) {
  return static_cast<int32_t>(received - acknowledged);
}

/// Writes into a hang report's note what a destruction waits for. `call` and `object` are names:
/// "ibv_destroy_cq", "CQ".
inline void describe_wait(char* text, size_t size, const char* call, const char* object,
                          uint32_t number, const Unacknowledged& events) {
  const bool excess_completion = events.completion < 0;
  if (excess_completion || events.async < 0) {
    const int64_t excess = -int64_t{excess_completion ? events.completion : events.async};
    snprintf(text, size,
             "%s: the program acknowledged %lld more %s event%s of %s %u than it received; "
             "acknowledge each event once with %s",
             call, static_cast<long long>(excess), excess_completion ? "completion" : "async",
             excess == 1 ? "" : "s", object, number,
             excess_completion ? "ibv_ack_cq_events" : "ibv_ack_async_event");
    return;
  }
  snprintf(text, size,
           "%s: %s %u has %d completion and %d async events that were not acknowledged by %s%s%s",
           call, object, number, events.completion, events.async,
           events.completion != 0 ? "ibv_ack_cq_events" : "",
           events.completion != 0 && events.async != 0 ? " and " : "",
           events.async != 0 ? "ibv_ack_async_event" : "");
}

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
    describe_wait(text, sizeof text, call, object, number, events);
    const WaitNote note(text);
    pthread_cond_wait(cond, mutex);
  }
  pthread_mutex_unlock(mutex);
  if (sanitizer() != nullptr && waits) sanitizer()->has_acknowledgements(handle);
}

}  // namespace rocemu::provider
