// What VIPL's handles stand for. One lock for each NIC guards the NIC and all that belongs to it;
// handlers of the program run without any.
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
    1024;  // per work queue; VIPL 1.0 asks for at least that
inline constexpr uint32_t kMaxDataSegments = 16;
inline constexpr uint8_t kPort = 1;

struct Nic;
struct Vi;

struct Object {
  std::shared_ptr<Nic> nic;
  void* handle = nullptr;
  bool dead = false;  // destroyed, though a call on another thread may still hold it
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

/// A CQ of VIPL, or the ibv_cq behind work queues that have none.
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
  bool visible = false;  // a CQ of VIPL: descriptors that complete make entries
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  unsigned users = 0;  // work queues
  bool armed = false;  // an event will come, or is there unread
  std::deque<Entry> entries;
  std::deque<Handler> handlers;
  unsigned registrations = 0;  // handlers, and those of the work queues that have no CQ of VIPL

  // Of the threads that wait, one sleeps on the channel, and the others on the condition.
  bool has_leader = false;
  int kick_fd = -1;  // wakes the leader for what came without an event
  std::condition_variable followers;
};

/// A descriptor in a work queue.
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
  uint64_t first_serial = 0;  // of posted.front(); goes into wr_id
  size_t published = 0;       // how many at the head are complete as the program sees it
  bool broken = false;        // an error is ahead that ends the connection: what comes is flushed
  std::shared_ptr<Cq> cq;
  std::deque<Handler> handlers;
};

struct CmEvent {
  rdma_cm_event_type type{};
  int status = 0;
  std::string private_data;
};

/// An rdma_cm id that connects or is connected.
struct Connection {
  uint64_t key = 0;  // the id's context
  rdma_cm_id* id = nullptr;
  std::deque<CmEvent> events;  // for the thread that sets the connection up
  Vi* vi = nullptr;            // once it is set up
  bool over = false;           // DISCONNECTED came
  bool closing = false;        // we disconnected, and only wait for the peer's answer
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
  bool cancelled = false;  // a pending connection is to be given up

  enum class Peer { kNone, kPending, kOver } peer = Peer::kNone;
  VIP_RETURN peer_result = VIP_SUCCESS;
  VIP_VI_ATTRIBUTES peer_attributes{};

  bool reliable() const { return attributes.ReliabilityLevel != VIP_SERVICE_UNRELIABLE; }
};

/// A connection request that VipConnectWait has got.
struct Request : Object {
  std::shared_ptr<Connection> connection;
  NetAddress from;
  std::string discriminator;  // that it is for
  bool of_peer = false;
  VIP_VI_ATTRIBUTES attributes{};
};

/// A thread that waits for a request to its discriminator. A peer wants only its own peer's.
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
  std::shared_ptr<Object> owner;  // once it is dead, the call is cancelled
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

  // The thread that calls handlers: notify.cc.
  std::thread handler_thread;
  int epoll_fd = -1;
  int jobs_fd = -1;
  std::deque<Job> jobs;
  const Object* running = nullptr;  // whose handler runs
  VIP_ERROR_HANDLER error_handler = nullptr;
  VIP_PVOID error_context = nullptr;
  bool in_error_handler = false;

  // The thread that reads events of connections and of the device: events.cc.
  std::thread event_thread;
  int stop_fd = -1;
  rdma_event_channel* channel = nullptr;
  std::map<uint64_t, std::shared_ptr<Connection>> connections;
  std::map<uint16_t, Listener> listeners;  // by port
  std::list<Waiter*> waiters;
  std::map<std::string, uint16_t> served;         // discriminators whose requests are kept: ports
  std::list<std::shared_ptr<Request>> unclaimed;  // of those
  unsigned peer_threads = 0;
  bool names_open = false;
};

extern Handles<Nic> nics;
extern Handles<Ptag> ptags;
extern Handles<Vi> vis;
extern Handles<Cq> cqs;
extern Handles<Request> requests;

/// The NIC's tag of that handle, or null. With the NIC locked.
std::shared_ptr<Ptag> find_ptag(const Nic& nic, VIP_PROTECTION_HANDLE handle);

inline Nic& nic_of(Nic& nic) {
  return nic;
}
inline Nic& nic_of(Object& object) {
  return *object.nic;
}

/// The object of a handle, with its NIC locked; false if there is none.
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

/// No exception leaves the library: what cannot be allocated is a lack of resources.
template <class Body>
VIP_RETURN guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return VIP_ERROR_RESOURCE;
  }
}

/// When a timeout in milliseconds is over.
inline Clock::time_point deadline_after(VIP_ULONG timeout) {
  if (timeout >= VIP_INFINITE) return Clock::time_point::max();
  return Clock::now() + std::chrono::milliseconds(timeout);
}
/// For poll(2): rounded up, so that nobody wakes too early and spins.
int milliseconds_until(Clock::time_point deadline);

}  // namespace rocemu::vipl
