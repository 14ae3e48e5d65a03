// The completion of descriptors: from ibv_cqs to work queues and completion queues, and to the
// threads that wait for them. All functions must be called with the NIC locked.
#pragma once

#include <optional>

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Polls the ibv_cq until it is empty, and records the completions in the work queues.
void drain(Cq& cq);
/// Stores the status of the finished descriptors at the head of the work queue, in order, so that
/// the program sees that they are complete.
void advance(Vi& vi, WorkQueue& queue);
/// Flushes all unfinished descriptors. The QP must be unable to access them any more.
void flush(Vi& vi, WorkQueue& queue);
/// Ends a connection because of an error: the VI goes to VIP_STATE_ERROR, the peer is disconnected,
/// and the error is reported to the program.
void break_connection(Vi& vi, VIP_ERROR_CODE code, VIP_DESCRIPTOR* descriptor = nullptr);

/// Creates a CQ. Returns null with errno set if that fails.
std::shared_ptr<Cq> make_cq(const std::shared_ptr<Nic>& nic, uint32_t entries, bool visible);
/// Closes the CQ. Does not wait for handlers.
void close_cq(Cq& cq);
/// Reads an event from the CQ's channel, if there is one.
void take_event(Cq& cq);
/// Requests an event if handlers are registered or a thread sleeps on the channel. Then drains the
/// CQ, because completions from before the request cause no event.
void keep_armed(Cq& cq);
void wake_waiters(Cq& cq);

/// Waits until ready() returns a result, and returns it. Returns VIP_TIMEOUT after the deadline,
/// and VIP_INVALID_PARAMETER if the CQ is closed. The lock is released while the thread sleeps.
/// `likely_there` makes the function poll the ibv_cq first, which saves time if a completion is
/// there.
VIP_RETURN wait_for(Lock& lock, Cq& cq, Clock::time_point deadline, bool likely_there,
                    const std::function<std::optional<VIP_RETURN>()>& ready);

/// Gives completed descriptors to the registered handlers.
void serve(Vi& vi, WorkQueue& queue);
void serve(Cq& cq);

/// Returns the next completed descriptor and removes it from its queue; VIP_NOT_DONE if there is
/// none.
VIP_RETURN take_descriptor(WorkQueue& queue, VIP_DESCRIPTOR** descriptor);

}  // namespace rocemu::vipl
