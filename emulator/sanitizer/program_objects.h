// The objects that one program has created and not yet destroyed, as observed from its verb calls
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/abi/verbs_values.h"
#include "emulator/sanitizer/recent_map.h"
#include "emulator/sanitizer/report.h"
#include "emulator/sanitizer/requests.h"

namespace rocemu::sanitizer {

/// The address by which the program knows an object, such as its ibv_qp*. It is never dereferenced.
using Handle = const void*;
using Thread = uint64_t;

enum class ObjectKind : uint8_t { kPd, kMr, kMw, kAh, kCq, kSrq, kQp };

struct ObjectInfo {
  std::string_view name;     // in messages
  std::string_view destroy;  // the verb
};
constexpr ObjectInfo info_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kPd:
      return {"PD", "ibv_dealloc_pd"};
    case ObjectKind::kMr:
      return {"memory region", "ibv_dereg_mr"};
    case ObjectKind::kMw:
      return {"memory window", "ibv_dealloc_mw"};
    case ObjectKind::kAh:
      return {"address handle", "ibv_destroy_ah"};
    case ObjectKind::kCq:
      return {"CQ", "ibv_destroy_cq"};
    case ObjectKind::kSrq:
      return {"SRQ", "ibv_destroy_srq"};
    case ObjectKind::kQp:
      return {"QP", "ibv_destroy_qp"};
  }
  return {};
}

enum class QueueKind : uint8_t { kSend, kReceive, kShared };

struct Qp;

struct Queue {
  QueueKind kind = QueueKind::kSend;
  Qp* qp = nullptr;       // null for an SRQ
  uint32_t number = 0;    // of the QP or SRQ
  uint32_t capacity = 0;  // max_send_wr, max_recv_wr or max_wr
  uint32_t max_sge = 0;
  uint32_t max_inline = 0;  // of a send queue
  Requests requests;
};

/// The members that all kinds of objects have
struct Object {
  ObjectKind kind{};
  Handle handle = nullptr;
  Handle context = nullptr;
  uint32_t number = 0;
  Handle pd = nullptr;  // if it has one
  CallSite created;

  std::string title() const {  // "QP 5"
    return std::string(info_of(kind).name) + " " + std::to_string(number);
  }
};

/// A part of a region whose pages were replaced or unmapped, in the addresses that SGEs use
struct ChangedPart {
  uint64_t begin = 0, end = 0;
  CallSite site;
};

struct Mr : Object {
  uint32_t lkey = 0, rkey = 0;
  uint64_t address = 0, length = 0;  // in the addresses of SGEs, if has_addresses
  bool has_addresses = false;
  bool is_writable = false;  // IBV_ACCESS_LOCAL_WRITE
  bool is_remote = false;    // a peer can use it
  /// The region's address in the process; 0 if the region is not mapped in the process, such as
  /// device memory.
  uint64_t memory = 0;
  std::vector<ChangedPart> changed;
};

struct Cq : Object {
  uint32_t capacity = 0;
  uint64_t polls = 0;    // calls, by all threads
  Thread polled_by = 0;  // 0: never polled
  bool is_polled_by_several = false;

  Handle channel = nullptr;
  bool is_armed = false;  // and there was no event since, as far as is known
  uint64_t arms = 0;      // since the latest event
  CallSite armed;         // the latest request for notification; stack 0: there was none
  uint64_t polls_at_arm = 0;
  bool could_complete_at_arm = false;       // a QP had work outstanding
  bool is_for_solicited = false;            // it was armed for solicited completions only
  uint32_t produced_at_arm = 0, taken = 0;  // completions, modulo 2^32

  /// Returns the number of completions that had arrived when the CQ was armed, and that the program
  /// has not polled yet.
  uint32_t left_since_arm() const {
    const uint32_t left = produced_at_arm - taken;
    return left < (1u << 31) ? left : 0;
  }

  uint32_t left_at_end = 0;  // completions that the program has not polled when it ends
};

struct Srq : Object {
  Queue receives;
  Handle cq = nullptr;  // of an XRC SRQ
};

struct Qp : Object {
  abi::QpType type{};
  abi::QpState state = abi::QpState::kReset;  // the value that the program last set
  /// The program polled an error completion since the QP was last in RESET, or moved to RTS.
  bool had_error = false;
  /// That was the completion of a send, so that each later send completes with an error, too.
  bool flushes_sends = false;
  /// It left the QP in ERR, and not in SQE, in which a UC or UD QP keeps its receives (IBTA vol 1,
  /// 10.3.1).
  bool flushes_receives = false;
  /// The number of sends posted before a UC or UD QP was moved to RTS, perhaps from SQE. If one of
  /// them failed, this says nothing about the present state.
  uint64_t sends_before_recovery = 0;
  bool signals_all = false;
  uint32_t peer = 0;  // the number of the QP to which it is connected
  const Cq* sends_to = nullptr;
  Handle srq = nullptr;
  const Cq* receives_from = nullptr;
  Queue sends, receives;

  Qp() = default;
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  bool can_be_in_sqe() const { return type == abi::QpType::kUc || type == abi::QpType::kUd; }
  /// Notes that the program polled the error completion of a request. `request` is its number.
  void note_error(QueueKind queue, uint64_t request) {
    const bool is_send = queue == QueueKind::kSend;
    if (is_send && request <= sends_before_recovery) return;
    had_error = true;
    if (is_send) flushes_sends = true;
    if (!is_send || !can_be_in_sqe()) flushes_receives = true;
  }
  /// Notes that the program moved the QP to that state. A QP in ERR can be moved only to RESET, so
  /// a QP that was moved to RTS was not in ERR.
  void enter(abi::QpState to) {
    state = to;
    if (to == abi::QpState::kReset) {
      sends.requests.finish_all();
      receives.requests.finish_all();
    }
    if (to != abi::QpState::kReset && to != abi::QpState::kRts) return;
    had_error = flushes_sends = flushes_receives = false;
    if (can_be_in_sqe()) sends_before_recovery = sends.requests.posted();
  }
};

/// A table of the objects of one kind
template <class T>
class Table {
 public:
  T* find(Handle handle) {
    const std::unique_ptr<T>* const found = objects_.find(handle);
    return found == nullptr ? nullptr : found->get();
  }
  T& add(std::unique_ptr<T> object) {
    T& added = *object;
    objects_[object->handle] = std::move(object);
    return added;
  }
  std::unique_ptr<T> take(Handle handle) {
    std::unique_ptr<T>* const found = objects_.find(handle);
    if (found == nullptr) return nullptr;
    std::unique_ptr<T> object = std::move(*found);
    objects_.erase(handle);
    return object;
  }
  void forget(Handle context) {
    objects_.erase_if([&](const auto& one) { return one.second->context == context; });
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [handle, object] : objects_) visit(*object);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [handle, object] : objects_) visit(std::as_const(*object));
  }

 private:
  RecentMap<Handle, std::unique_ptr<T>> objects_;
};

/// A context, and the number of a QP or SRQ in it, as completions contain it
struct NumberInContext {
  Handle context;
  uint32_t number;
  bool operator==(const NumberInContext&) const = default;
};
struct NumberHash {
  size_t operator()(const NumberInContext& one) const {
    return std::hash<Handle>()(one.context) ^ size_t { one.number } * 0x9e3779b1;
  }
};

struct Objects {
  bool has_changed_mappings = false;  // of a region that still exists, or existed
  Table<Object> pds, windows, address_handles;
  Table<Mr> regions;
  Table<Cq> cqs;
  Table<Srq> srqs;
  Table<Qp> qps;
  RecentMap<NumberInContext, Qp*, NumberHash> qps_by_number;
  RecentMap<NumberInContext, Srq*, NumberHash> srqs_by_number;
  std::unordered_map<uint32_t, Mr*> regions_by_lkey;

  /// Returns the address in the process of the SGE's first byte; 0 if it is unknown.
  uint64_t memory_of(const abi::Sge& sge) const {
    const auto found = regions_by_lkey.find(sge.lkey);
    if (found == regions_by_lkey.end()) return 0;
    const Mr& region = *found->second;
    if (region.memory == 0 || sge.address < region.address) return 0;
    return region.memory + (sge.address - region.address);
  }

  /// Removes all objects of the context.
  void forget(Handle context) {
    qps_by_number.erase_if([&](const auto& one) { return one.first.context == context; });
    srqs_by_number.erase_if([&](const auto& one) { return one.first.context == context; });
    std::erase_if(regions_by_lkey, [&](const auto& one) { return one.second->context == context; });
    qps.forget(context);
    srqs.forget(context);
    cqs.forget(context);
    regions.forget(context);
    windows.forget(context);
    address_handles.forget(context);
    pds.forget(context);
  }

  template <class Visit>
  void for_each_object(Visit visit) const {
    pds.for_each(visit);
    regions.for_each(visit);
    windows.for_each(visit);
    address_handles.for_each(visit);
    cqs.for_each(visit);
    srqs.for_each(visit);
    qps.for_each(visit);
  }

  /// Visits the queues of all QPs and SRQs, sorted by the number of the QP or SRQ, and then by the
  /// kind of queue.
  template <class Visit>
  void for_each_queue(Visit visit) const {
    std::vector<const Queue*> queues;
    qps.for_each([&](const Qp& qp) {
      queues.push_back(&qp.sends);
      queues.push_back(&qp.receives);
    });
    srqs.for_each([&](const Srq& srq) { queues.push_back(&srq.receives); });
    std::sort(queues.begin(), queues.end(), [](const Queue* a, const Queue* b) {
      return std::pair(a->number, a->kind) < std::pair(b->number, b->kind);
    });
    for (const Queue* queue : queues) visit(*queue);
  }
};

}  // namespace rocemu::sanitizer
