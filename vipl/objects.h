// The objects of VIPL's handles. One lock for each NIC guards the NIC and all its objects; handlers
// of the program run without a lock.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "vipl/handles.h"
#include "vipl/net_address.h"
#include "vipl/vipl.h"

namespace rocemu::vipl {

using Lock = std::unique_lock<std::mutex>;
using Clock = std::chrono::steady_clock;

inline constexpr uint32_t kMaxDescriptors =
    1024;  // per work queue; VIPL 1.0 requires at least that
inline constexpr uint32_t kMaxDataSegments = 16;
inline constexpr uint8_t kPort = 1;

struct Nic;
struct Vi;

struct Object {
  std::shared_ptr<Nic> nic;
  void* handle = nullptr;
  bool dead = false;  // destroyed, while a call on another thread may still hold it
};

struct Ptag : Object {
  ibv_pd* pd = nullptr;
  unsigned users = 0;  // VIs and regions
};

struct Region {
  ibv_mr* mr = nullptr;
  void* address = nullptr;
  size_t length = 0;
  VIP_MEM_ATTRIBUTES attributes{};
  std::shared_ptr<Ptag> ptag;

  bool covers(const void* first, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const auto from = reinterpret_cast<uintptr_t>(first);
    return from >= begin && from - begin <= length && bytes <= length - (from - begin);
  }
};

/// A CQ of VIPL, or an ibv_cq for the work queues of a VI that have no CQ of VIPL
struct Cq : Object {
  Cq() = default;
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  ~Cq();

  struct Entry {
    std::shared_ptr<Vi> vi;
    bool recv = false;
  };
  struct Handler {
    VIP_CQ_CALLBACK call;
    VIP_PVOID context;
  };

  uint64_t id = 0;
  bool visible = false;  // a CQ of VIPL: completed descriptors cause entries
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  unsigned users = 0;  // work queues
  bool armed = false;  // an event will arrive, or is unread
  std::deque<Entry> entries;
  std::deque<Handler> handlers;
  unsigned registrations = 0;  // handlers, including those of work queues without a CQ of VIPL

  // If true, one of the waiting threads sleeps on the channel; the others sleep on the condition.
  bool has_leader = false;
  int kick_fd = -1;  // wakes the leader for completions without an event
  std::condition_variable followers;
};

/// A descriptor in a work queue
struct Posted {
  VIP_DESCRIPTOR* descriptor = nullptr;
  VIP_MEM_HANDLE handle = 0;
  bool on_qp = false;
  bool finished = false;
  uint32_t status = 0;  // operation and errors; DONE is added when it is published
  uint32_t length = 0;
  bool has_immediate = false;
  uint32_t immediate = 0;
};

struct WorkQueue {
  struct Handler {
    VIP_VI_CALLBACK call;
    VIP_PVOID context;
  };
  bool recv = false;
  std::deque<Posted> posted;
  uint64_t first_serial = 0;  // of posted.front(); stored in wr_id
  size_t published = 0;       // number at the head that the program sees as complete
  bool broken = false;        // an earlier error ends the connection: later ones are flushed
  std::shared_ptr<Cq> cq;
  std::deque<Handler> handlers;
};

struct CmEvent {
  rdma_cm_event_type type{};
  int status = 0;
  std::string private_data;
};

/// An rdma_cm id that connects or is connected
struct Connection {
  uint64_t key = 0;  // the id's context
  rdma_cm_id* id = nullptr;
  std::deque<CmEvent> events;  // for the thread that sets up the connection
  Vi* vi = nullptr;            // once it is set up
  bool over = false;           // DISCONNECTED arrived
  bool closing = false;        // we disconnected, and only wait for the peer's reply
};

struct Vi : Object {
  Vi() = default;
  Vi(const Vi&) = delete;
  Vi& operator=(const Vi&) = delete;

  VIP_VI_ATTRIBUTES attributes{};
  std::shared_ptr<Ptag> ptag;
  VIP_VI_STATE state = VIP_STATE_IDLE;
  ibv_qp* qp = nullptr;
  WorkQueue send, recv;
  std::shared_ptr<Connection> connection;
  bool canceled = false;  // a pending connection must be ended

  enum class Peer { kNone, kPending, kOver } peer = Peer::kNone;
  VIP_RETURN peer_result = VIP_SUCCESS;
  VIP_VI_ATTRIBUTES peer_attributes{};

  bool reliable() const { return attributes.ReliabilityLevel != VIP_SERVICE_UNRELIABLE; }
};

/// A connection request that VipConnectWait returned
struct Request : Object {
  std::shared_ptr<Connection> connection;
  NetAddress from;
  std::string discriminator;  // the destination of the request
  bool of_peer = false;
  VIP_VI_ATTRIBUTES attributes{};
};

/// A thread that waits for a request for its discriminator. A thread that connects to a peer
/// accepts only a request from the peer's address.
struct Waiter {
  std::string discriminator;
  const NetAddress* peer = nullptr;
  std::shared_ptr<Request> got;
};

struct Listener {
  uint64_t key = 0;
  rdma_cm_id* id = nullptr;
  unsigned users = 0;
};

struct Job {
  std::shared_ptr<Object> owner;  // once it is dead, the call is canceled
  std::function<void()> call;
};

struct Nic : std::enable_shared_from_this<Nic> {
  Nic() = default;
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;
  ~Nic();

  std::mutex mutex;
  std::condition_variable changed;  // of connections, jobs and states of VIs
  void* handle = nullptr;
  bool dead = false;
  ibv_context* context = nullptr;
  ibv_device_attr device{};
  std::string name;
  std::string address;  // 4 or 16 bytes

  std::unordered_map<VIP_MEM_HANDLE, Region> regions;
  std::unordered_map<uint32_t, Vi*> vi_of_qp;
  std::unordered_map<uint64_t, std::weak_ptr<Cq>> cqs;
  uint64_t last_id = 0;

  // The thread that calls handlers: notify.cc
  std::thread handler_thread;
  int epoll_fd = -1;
  int jobs_fd = -1;
  std::deque<Job> jobs;
  const Object* running = nullptr;  // whose handler runs
  VIP_ERROR_HANDLER error_handler = nullptr;
  VIP_PVOID error_context = nullptr;
  bool in_error_handler = false;

  // The thread that reads events of connections and of the device: connection.cc
  std::thread event_thread;
  int stop_fd = -1;
  rdma_event_channel* channel = nullptr;
  std::map<uint64_t, std::shared_ptr<Connection>> connections;
  std::map<uint16_t, Listener> listeners;  // by port
  std::list<Waiter*> waiters;
  std::map<std::string, uint16_t> served;         // discriminators whose requests are kept: ports
  std::list<std::shared_ptr<Request>> unclaimed;  // of these discriminators
  unsigned peer_threads = 0;
  bool names_open = false;
};

extern Handles<Nic> nics;
extern Handles<Ptag> ptags;
extern Handles<Vi> vis;
extern Handles<Cq> cqs;
extern Handles<Request> requests;

/// Returns the NIC's tag of that handle, or null. The NIC must be locked.
std::shared_ptr<Ptag> find_ptag(const Nic& nic, VIP_PROTECTION_HANDLE handle);

inline Nic& nic_of(Nic& nic) {
  return nic;
}
inline Nic& nic_of(Object& object) {
  return *object.nic;
}

/// The object of a handle. Its NIC is locked while this exists. It is false if the handle has no
/// object, or an object that was destroyed.
template <class T>
struct Access {
  Access(Handles<T>& handles, const void* handle) : object(handles.find(handle)) {
    if (object == nullptr) return;
    lock = Lock(nic_of(*object).mutex);
    if (object->dead) lock.unlock();
    if (!lock) object.reset();
  }
  explicit operator bool() const { return object != nullptr; }
  T* operator->() const { return object.get(); }
  T& operator*() const { return *object; }

  std::shared_ptr<T> object;
  Lock lock;
};

/// Runs `body` and returns its result. No exception leaves the library: the result is then
/// VIP_ERROR_RESOURCE.
template <class Body>
VIP_RETURN guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return VIP_ERROR_RESOURCE;
  }
}

/// Returns the time at which a timeout in milliseconds, counted from now, ends.
inline Clock::time_point deadline_after(VIP_ULONG timeout) {
  if (timeout >= VIP_INFINITE) return Clock::time_point::max();
  return Clock::now() + std::chrono::milliseconds(timeout);
}
/// Returns the time until the deadline, in the form of poll(2)'s timeout. It is rounded up, so that
/// no thread wakes too early and spins.
int milliseconds_until(Clock::time_point deadline);

}  // namespace rocemu::vipl
