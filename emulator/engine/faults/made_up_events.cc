#include "emulator/engine/faults/made_up_events.h"

#include "emulator/engine/faults/rule.h"

namespace rocemu::engine::faults {
namespace {

using abi::EventType;

enum class Element { kQp, kCq, kSrq, kDevice };

/// Returns the kind of object to which an event belongs, according to ibv_get_async_event(3).
Element element_of(EventType type) {
  switch (type) {
    case EventType::kQpFatal:
    case EventType::kQpReqErr:
    case EventType::kQpAccessErr:
    case EventType::kCommEst:
    case EventType::kSqDrained:
    case EventType::kPathMig:
    case EventType::kPathMigErr:
    case EventType::kQpLastWqeReached:
      return Element::kQp;
    case EventType::kCqErr:
      return Element::kCq;
    case EventType::kSrqErr:
    case EventType::kSrqLimitReached:
      return Element::kSrq;
    case EventType::kDeviceFatal:
    case EventType::kPortActive:
    case EventType::kPortErr:
    case EventType::kLidChange:
    case EventType::kPkeyChange:
    case EventType::kSmChange:
    case EventType::kClientReregister:
    case EventType::kGidChange:
    case EventType::kWqFatal:  // there are no WQs
    case EventType::kDeviceSpeedChange:
      break;
  }
  return Element::kDevice;
}

}  // namespace

bool MadeUpEvents::concerns_device(EventType type) {
  return element_of(type) == Element::kDevice;
}

void MadeUpEvents::raise(EventType type, std::optional<DeviceIndex> device, const QueuePair* qp) {
  const Element element = element_of(type);
  if (element == Element::kDevice) {
    if (device) raise_on_device(type, *device);
    return;
  }
  if (qp == nullptr) return;
  if (element == Element::kQp) {
    delivery_.raise(*qp, type);
    // The QP is failed later, since the caller that consulted the rules still uses it.
    if (fails_qp(type)) failing_qps_.push_back(qp->number);
  } else if (element == Element::kCq) {
    CompletionQueue* cq = objects_.cqs.find(qp->send_cq);
    if (cq != nullptr && !cq->failed) completions_.overrun(*cq);
  } else if (qp->srq) {
    const SharedReceiveQueue* srq = objects_.srqs.find(*qp->srq);
    if (srq != nullptr) delivery_.raise(srq->client, type, srq->user_handle);
  }
}

void MadeUpEvents::raise_on_device(EventType type, DeviceIndex device) {
  objects_.clients.for_each_of(device, [&](ClientId client) {
    delivery_.raise(client, type, 1);  // the port, for events that name one
  });
}

std::optional<QpNumber> MadeUpEvents::take_failing_qp() {
  if (failing_qps_.empty()) return std::nullopt;
  const QpNumber number = failing_qps_.back();
  failing_qps_.pop_back();
  return number;
}

}  // namespace rocemu::engine::faults
