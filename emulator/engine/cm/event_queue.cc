#include "emulator/engine/cm/event_queue.h"

namespace rocemu::engine::cm {
namespace {

constexpr size_t kMaxEvents = 4096;

}  // namespace

Event* EventQueue::add(const Connection& connection, EventKind kind,
                       const std::optional<wire::CmMessage>& message) {
  if (connection.orphan) return nullptr;
  return &events_.emplace_back(Event{.kind = kind,
                                     .connection = connection.id,
                                     .context = connection.context,
                                     .listener = std::nullopt,
                                     .route = connection.route,
                                     .answered = false,
                                     .message = message});
}

std::optional<Event> EventQueue::take() {
  if (events_.empty()) return std::nullopt;
  const Event event = events_.front();
  events_.pop_front();
  return event;
}

bool EventQueue::is_full() const {
  return events_.size() >= kMaxEvents;
}

}  // namespace rocemu::engine::cm
