// The events of a program, which the checks of rules receive
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/sanitizer/program_objects.h"
#include "emulator/sanitizer/report.h"

namespace rocemu::sanitizer {

/// The reason why a post was refused, as far as rules need it
enum class Refusal : uint8_t { kNone, kFull, kState, kTooManySges, kTooMuchInline, kOther };

/// A call that posted requests or was refused. It posted the requests from number `begin` up to,
/// but not including, `end`.
struct Post {
  const Objects& objects;
  Queue& queue;
  Thread thread;
  CallSite site;
  uint64_t begin, end;
  const void* head = nullptr;  // of the list; null for a builder
  uint64_t head_wr_id = 0;
  Refusal refusal = Refusal::kNone;  // of the request after them
  uint64_t asked = 0;                // its number of SGEs, or of inline bytes
};

/// A call that polls a CQ. The event comes before the call reads the CQ.
struct Poll {
  Cq& cq;
  Thread thread;
};

/// The program gets a completion. The completion finishes all requests of the queue up to number
/// `last`. On an SRQ, it finishes only one request, and `last` is 0.
struct Completion {
  const Objects& objects;
  Cq& cq;
  Queue& queue;
  Thread thread;
  CallSite site;  // set if it is an error
  uint64_t last;
  uint32_t status;                   // abi::WcStatus
  const Request* request = nullptr;  // its request; null if unknown
  uint32_t opcode = 0;               // abi::WcOpcode, if it is successful
  uint32_t length = 0;               // in bytes, for a successful receive
  uint32_t source_qp = 0;            // of a datagram
  Qp* qp = nullptr;                  // its QP, also for an SRQ; null if unknown
  uint32_t index = 0;                // in its CQ, counted from 0 modulo 2^32
  uint32_t produced = 0;             // completions that the CQ had had when the poll began
};

/// The requests from number `begin` + 1 on were not posted after all, because the device was
/// removed.
struct PostTakenBack {
  Queue& queue;
  uint64_t begin;
};

/// A request of an SRQ is finished without a completion, since the completions of its QP were
/// dropped.
struct DroppedCompletion {
  Queue& queue;
  uint64_t wr_id;
};

/// ibv_modify_qp() with IBV_QP_STATE has succeeded. The event comes before the queues are emptied.
struct StateChange {
  Qp& qp;
  abi::QpState from, to;
  CallSite site;
};

/// The program is about to destroy an object.
struct Destruction {
  Objects& objects;
  Object& object;
  Thread thread;
  CallSite site;
};

/// A destruction that failed, so that the object still exists
struct FailedDestruction {
  const Objects& objects;
  const Object& object;
  CallSite site;
  int error;
};

/// A verb refused a value that exceeds a limit. The limit is that of `whose`, which names a device
/// or an object.
struct BeyondLimit {
  std::string_view attribute;  // "cap.max_send_wr"
  uint64_t asked, allowed;
  std::string whose;
  CallSite site;
};

/// A verb refused an operation because of the object's present state. `message` is the message for
/// the report.
struct WrongState {
  std::string message;
  CallSite created, site;
};

/// AcknowledgementWait: a destruction waits for acknowledgements of events. A number of events is
/// negative if the program acknowledged more events than it received.
/// AcknowledgementsComplete: it has received all of them.
struct AcknowledgementWait {
  const Object& object;
  int32_t completion_events, async_events;
  CallSite site;
};
struct AcknowledgementsComplete {
  const Object& object;
};

/// CmWait: rdma_destroy_id() waits for acknowledgements of the id's events. CmWaitEnd: it has
/// received all of them.
struct CmWait {
  Handle id;
  uint64_t events;
  CallSite got;  // the latest of them
  CallSite site;
};
struct CmWaitEnd {
  Handle id;
};

/// ibv_req_notify_cq() has succeeded.
struct Arm {
  const Cq& cq;
};

/// EventWait: a thread waits in ibv_get_cq_event() for a channel that has no event. EventWaitEnd:
/// the thread has received an event, or has ended.
struct EventWait {
  std::span<const Cq* const> cqs;  // of the channel, by number
  Thread thread;
  CallSite site;
};
struct EventWaitEnd {
  Thread thread;
  bool has_ended = false;  // the thread, during the wait
};

/// The mapping of a part of a region's memory has changed.
struct MappingChange {
  const Objects& objects;
  const Mr& region;
  uint64_t begin, end;  // in the addresses of SGEs
  CallSite site;
};

struct Fork {
  const Objects& objects;
  bool is_protected;  // by ibv_fork_init()
  CallSite site;
  /// Memory that does not become copy-on-write, by address
  std::span<const MemoryRange> kept = {};
};

/// The program closes a device without destroying all objects of that context.
struct ContextEnd {
  Objects& objects;
  Handle context;
};

struct ProgramEnd {
  const Objects& objects;
};

/// The types of all events. The number of an event is its place in this list.
using Events = std::tuple<Post, Poll, Completion, PostTakenBack, DroppedCompletion, StateChange,
                          Destruction, FailedDestruction, BeyondLimit, WrongState,
                          AcknowledgementWait, AcknowledgementsComplete, CmWait, CmWaitEnd, Arm,
                          EventWait, EventWaitEnd, MappingChange, Fork, ContextEnd, ProgramEnd>;
inline constexpr size_t kEvents = std::tuple_size_v<Events>;

template <class Event, size_t kIndex = 0>
constexpr size_t number_of() {
  if constexpr (std::is_same_v<Event, std::tuple_element_t<kIndex, Events>>) {
    return kIndex;
  } else {
    return number_of<Event, kIndex + 1>();
  }
}

/// The check of one rule for one program. A rule's check overrides on() for the events that it
/// needs.
class Check {
 public:
  virtual ~Check() = default;
  virtual void on(const Post&) {}
  virtual void on(const Poll&) {}
  virtual void on(const Completion&) {}
  virtual void on(const PostTakenBack&) {}
  virtual void on(const DroppedCompletion&) {}
  virtual void on(const StateChange&) {}
  virtual void on(const Destruction&) {}
  virtual void on(const FailedDestruction&) {}
  virtual void on(const BeyondLimit&) {}
  virtual void on(const WrongState&) {}
  virtual void on(const AcknowledgementWait&) {}
  virtual void on(const AcknowledgementsComplete&) {}
  virtual void on(const CmWait&) {}
  virtual void on(const CmWaitEnd&) {}
  virtual void on(const Arm&) {}
  virtual void on(const EventWait&) {}
  virtual void on(const EventWaitEnd&) {}
  virtual void on(const MappingChange&) {}
  virtual void on(const Fork&) {}
  virtual void on(const ContextEnd&) {}
  virtual void on(const ProgramEnd&) {}
};

/// Returns whether the class T, a check, overrides on() for the event.
template <class T, class Event>
constexpr bool overrides_on() {
  return requires {
    static_cast<void (T::*)(const Event&)>(&T::on);
  };
}

/// Returns a bit mask with the numbers of the events whose on() the class T overrides.
template <class T>
constexpr uint64_t wanted_events() {
  return []<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return ((uint64_t{overrides_on<T, std::tuple_element_t<kIndex, Events>>()} << kIndex) | ...);
  }
  (std::make_index_sequence<kEvents>());
}

/// A check, and a bit mask of the events that it handles
struct WantingCheck {
  std::unique_ptr<Check> check;
  uint64_t wanted;
};

/// The base class of a check whose rule is `kRule`
template <const Rule& kRule>
class CheckOf : public Check {
 public:
  explicit CheckOf(Host& host) : host_(host) {}

 protected:
  using Check::on;
  Host& host() { return host_; }
  void report(std::string message, std::initializer_list<NamedCallSite> sites) {
    host_.report({kRule, std::move(message), {sites.begin(), sites.size()}});
  }

 private:
  Host& host_;
};

template <class T>
WantingCheck make_check(Host& host) {
  static_assert(wanted_events<T>() != 0);
  return {std::make_unique<T>(host), wanted_events<T>()};
}

}  // namespace rocemu::sanitizer
