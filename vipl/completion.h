// How descriptors complete: from ibv_cqs into work queues and completion queues, and to the
// threads that wait for them. All are called with the NIC locked.
#pragma once

#include <optional>

#include "vipl/objects.h"

namespace rocemu::vipl {

/// Takes what is in the ibv_cq to the work queues.
void drain(Cq& cq);
/// Publishes what is finished at the head of the work queue.
void advance(Vi& vi, WorkQueue& queue);
/// All that is not finished yet is flushed. The QP must be unable to touch it any more.
void flush(Vi& vi, WorkQueue& queue);
/// Ends a connection for an error: the VI goes to VIP_STATE_ERROR, and both sides get to know.
void break_connection(Vi& vi, VIP_ERROR_CODE code, VIP_DESCRIPTOR* descriptor = nullptr);

/// Null if there cannot be one; errno says why.
std::shared_ptr<Cq> make_cq(const std::shared_ptr<Nic>& nic, uint32_t entries, bool visible);
/// Without waiting for handlers.
void close_cq(Cq& cq);
/// An event has come, perhaps.
void take_event(Cq& cq);
/// If handlers are registered or a thread sleeps, an event is asked for, and what came before it is
/// not missed.
void keep_armed(Cq& cq);
void wake_waiters(Cq& cq);

/// Waits until ready() says what to return. The lock is open meanwhile. `likely_there` makes no
/// difference but that in the time it takes.
VIP_RETURN wait_for(Lock& lock, Cq& cq, Clock::time_point deadline, bool likely_there,
                    const std::function<std::optional<VIP_RETURN>()>& ready);

/// Gives what is complete to the handlers that are registered.
void serve(Vi& vi, WorkQueue& queue);
void serve(Cq& cq);

/// The next descriptor that is complete, taken out of its queue; VIP_NOT_DONE if there is none.
VIP_RETURN take_descriptor(WorkQueue& queue, VIP_DESCRIPTOR** descriptor);

}  // namespace rocemu::vipl
