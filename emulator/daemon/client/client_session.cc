#include "emulator/daemon/client/client_session.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "emulator/engine/base/limits.h"

#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/foreign_descriptors.h"
#include "emulator/daemon/base/other_nics.h"
#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns whether no process has the other end of the socket open any more.
bool is_hung_up(int socket) {
  pollfd entry{socket, 0, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

/// A message longer than any is recognised by filling this.
using RequestBuffer = std::array<std::byte, sizeof(abi::Request) + 1>;
constexpr size_t kHeaderSize = offsetof(abi::Request, body);

/// A descriptor that becomes readable when the process is gone; none before Linux 5.3.
UniqueFd open_process(pid_t pid) {
#ifdef SYS_pidfd_open
  if (pid > 0) return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#endif
  return {};
}

}  // namespace

ClientSession::ClientSession(const Services& services, engine::ClientId id,
                             engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer)
    : services_(services),
      device_(device),
      peer_(peer),
      command_name_(proc::name_of(peer.pid)),
      ring_pump_(services.engine),
      events_(services.loop),
      objects_(services.engine, events_, queues_),
      socket_(std::move(socket)) {
  queues_.id = id;
  socket_watch_ = services_.loop.watch(socket_.get(), EPOLLIN, [this](uint32_t) {
    unless_out_of_memory([this] {
      on_readable();
      return true;
    });
  });
  if (!socket_watch_) end("its socket cannot be watched");
}

std::string ClientSession::description() const {
  return fmt::format("client {} ({}, pid {})", id().value, command_name_, peer_.pid);
}

void ClientSession::end(std::string reason) {
  if (queues_.ended) return;
  queues_.ended = true;
  end_reason_ = std::move(reason);
  socket_watch_.reset();
  doorbell_watch_.reset();
  process_watch_.reset();
  services_.owner.ended(*this);
}

// ---- Doorbells ------------------------------------------------------------------------------

bool ClientSession::note_doorbells() {
  if (queues_.ended || !attached_) return false;
  noted_ = RingPump::end_of(queues_);
  return noted_ != queues_.doorbells_consumed;
}

void ClientSession::take_receives() {
  if (queues_.ended || !attached_) return;
  unless_out_of_memory([this] {
    if (const char* violation = ring_pump_.take_receives(queues_, receive_budget_)) end(violation);
    return true;
  });
}

bool ClientSession::pump() {
  if (queues_.ended || !attached_) return false;
  receive_budget_ = kReceiveBudget;
  return unless_out_of_memory(
      [this] { return after_pumping(ring_pump_.run(queues_, noted_, kPumpBudget)); });
}

bool ClientSession::pump_by_object() {
  if (queues_.ended || !attached_) return false;
  return unless_out_of_memory(
      [this] { return after_pumping(ring_pump_.run_by_object(queues_, noted_, kOrderedBudget)); });
}

template <class Work>
bool ClientSession::unless_out_of_memory(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    end("out of memory");  // few enough letters for no memory
    return true;
  }
}

bool ClientSession::after_pumping(const RingPump::Result& result) {
  if (result.violation != nullptr) {
    end(result.violation);
    return true;
  }
  if (pending_ && !queues_.ended &&
      static_cast<int32_t>(queues_.doorbells_consumed - pending_->doorbells) >= 0) {
    Pending pending = std::move(*pending_);
    pending_.reset();
    execute(std::move(pending));
    return true;
  }
  return result.worked;
}

void ClientSession::begin_round(uint32_t round, engine::Instant now) {
  if (!attached_) return;
  abi::DoorbellRing& ring = queues_.doorbells();
  ring.device_time_ns.store(engine::nanoseconds_since_start(now), std::memory_order_relaxed);
  ring.round.store(round, std::memory_order_seq_cst);
  syscall(SYS_futex, &ring.round, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ClientSession::set_pollers_per_processor(uint32_t pollers) {
  if (!attached_) return;
  queues_.doorbells().pollers_per_processor.store(pollers, std::memory_order_relaxed);
}

void ClientSession::set_asked_for(uint32_t operations) {
  if (attached_) queues_.doorbells().asked_for.store(operations, std::memory_order_relaxed);
}

void ClientSession::set_daemon_sleeping(bool sleeping) {
  if (attached_) queues_.set_daemon_sleeping(sleeping);
}

uint32_t ClientSession::threads_giving_way() const {
  constexpr uint32_t kMost = 512;
  if (!attached_) return 0;
  return std::min(queues_.doorbells().giving_way.load(std::memory_order_relaxed), kMost);
}

uint32_t ClientSession::client_processor() const {
  return attached_ ? queues_.doorbells().client_processor.load(std::memory_order_relaxed) : 0;
}

bool ClientSession::has_doorbells() const {
  return attached_ && queues_.has_doorbells();
}

// ---- Events ---------------------------------------------------------------------------------

void ClientSession::deliver(const engine::CompletionEvent& event) {
  queues_.expects_event = false;
  unless_out_of_memory([&] {
    if (!events_.deliver(event)) end("a completion channel has too many unread events");
    return true;
  });
}

void ClientSession::deliver(const engine::AsyncEvent& event) {
  unless_out_of_memory([&] {
    if (!events_.deliver(event)) end("too many unread asynchronous events");
    return true;
  });
}

// ---- Requests -------------------------------------------------------------------------------

void ClientSession::on_readable() {
  if (queues_.ended || pending_) return;  // the next one stays in the socket meanwhile
  std::optional<Pending> pending = receive();
  if (!pending) return;
  if (!attached_) {
    execute(std::move(*pending));
    return;
  }
  // What the client rang before it asked must be seen before: a QP's last posts come before its
  // destruction.
  pending->doorbells = RingPump::end_of(queues_);
  if (pending->doorbells == queues_.doorbells_consumed) {
    execute(std::move(*pending));
    return;
  }
  pending_ = std::move(pending);
  services_.owner.wake(*this);
}

std::optional<ClientSession::Pending> ClientSession::receive() {
  RequestBuffer buffer;
  Message message = receive_message(socket_.get(), buffer);
  set_foreign_aside(message.fds, /*memory=*/!attached_);
  switch (message.status) {
    case Message::Status::kNothing:
      return std::nullopt;
    case Message::Status::kClosed:
      end("");
      return std::nullopt;
    case Message::Status::kTruncated:
      end("a message that is too long or has too many file descriptors");
      return std::nullopt;
    case Message::Status::kOk:
      break;
  }
  Pending pending{};
  std::memcpy(&pending.request, buffer.data(), std::min(message.size, sizeof pending.request));
  if (message.size < kHeaderSize || pending.request.magic != abi::kMagic) {
    end("a message that is not of the control protocol");
    return std::nullopt;
  }
  if (pending.request.version != abi::kVersion) {
    refuse_version(pending.request);
    return std::nullopt;
  }
  if (message.size != sizeof pending.request) {
    end(fmt::format("a request of {} bytes instead of {}", message.size, sizeof pending.request));
    return std::nullopt;
  }
  if (message.fds_lost) {
    tell_of_shortage();
    reply_status(pending.request, ENFILE);
    return std::nullopt;
  }
  pending.fds = std::move(message.fds);
  return pending;
}

void ClientSession::refuse_version(const abi::Request& request) {
  reply_status(request, EPROTO);
  end(fmt::format("it speaks version {} of the control protocol, this daemon {}", request.version,
                  abi::kVersion));
}

// With another NIC the peer would have another number, or be at another address. Both NICs of two
// `rocemu run` have the same, down to the numbers of the QPs; the starting PSNs, which the two
// programs have told each other, are not. A QP that a program connects to itself has one for both.
void ClientSession::explain_meeting(const abi::Request& request) {
  const auto& modify = request.body.modify_qp;
  constexpr uint32_t kPeer = abi::kAttrDestQpn | abi::kAttrAv | abi::kAttrRqPsn;
  if ((modify.mask & kPeer) == kPeer && modify.attr.dest_qp_num == modify.qpn) {
    to_itself_[modify.qpn] = modify.attr.rq_psn;
  }
  if ((modify.mask & abi::kAttrSqPsn) == 0) return;
  const auto found = to_itself_.find(modify.qpn);
  if (found == to_itself_.end()) return;
  if (found->second != modify.attr.sq_psn) {
    explain_meeting_itself(peer_.pid, modify.qpn);
  }
  to_itself_.erase(found);
}

void ClientSession::execute(Pending pending) {
  const abi::Request& request = pending.request;
  if ((request.op == abi::Op::kHello) == attached_) {
    end(attached_ ? "a second hello" : "a request before the hello");
    return;
  }
  if (request.op == abi::Op::kHello) {
    std::optional<HelloFds> fds = sort(request.body.hello.import != 0, std::move(pending.fds));
    if (!fds) return end("a hello with other file descriptors than it has to have");
    return hello(request, std::move(*fds));
  }
  services_.memory.withdraw_payload(id());
  if (request.op == abi::Op::kMemoryMayBlock) {
    return reply_status(request, services_.memory.expect_waits(id()));
  }
  if (request.refusal != 0) {
    // Nothing is registered or destroyed.
  } else if (request.op == abi::Op::kRegMr) {
    services_.memory.on_registration(id(), request.body.reg_mr.address, request.body.reg_mr.length);
  } else if (request.op == abi::Op::kReregMr) {
    const auto& region = request.body.rereg_mr;
    services_.memory.on_registration(id(), region.address, region.length);
  }
  if (abi::destroys(request.op) && request.refusal == 0) services_.owner.destroyed();
  services_.memory.expect_messages(false);
  const Answer answer = objects_.execute(request, pending.fds);
  services_.memory.expect_messages(true);
  if (answer.violation != nullptr) return end(answer.violation);
  if (request.op == abi::Op::kModifyQp && answer.reply.error == 0) explain_meeting(request);
  std::vector<int> given;
  for (const UniqueFd& fd : answer.fds) given.push_back(fd.get());
  reply(request, answer.reply, given);
}

std::optional<ClientSession::HelloFds> ClientSession::sort(bool imports,
                                                           std::vector<UniqueFd> fds) const {
  const size_t needed = imports ? 2 : 1;
  if (fds.size() < needed || fds.size() > needed + 1) return std::nullopt;
  HelloFds sorted;
  if (imports) {
    sorted.imported = std::move(fds.back());
    fds.pop_back();
  }
  sorted.client_end = std::move(fds.front());
  if (fds.size() == 2) sorted.mem_file = std::move(fds.back());
  if (!is_client_of_same_listener(sorted.client_end.get(), socket_.get())) return std::nullopt;
  return sorted;
}

ClientSession* ClientSession::find_imported(const UniqueFd& client_end) {
  const std::optional<FileId> file = file_id(client_end.get());
  ClientSession* found = file ? services_.owner.find_by_client_end(*file) : nullptr;
  return found != nullptr && found->device() == device_ ? found : nullptr;
}

void ClientSession::hello(const abi::Request& request, HelloFds fds) {
  engine::AttachClient attach{id(), device_};
  if (fds.imported) {
    const ClientSession* imported = find_imported(fds.imported);
    if (imported == nullptr) return reply_status(request, EINVAL);
    attach.shares_with = imported->id();
  }
  // One piece, since both have to be in the first segment. A limit on files may leave no room for
  // payload, without which all goes on as well.
  std::optional<Arena::Piece> memory =
      queues_.arena.take(sizeof(abi::DoorbellRing) + sizeof(abi::Payload));
  if (!memory) memory = queues_.arena.take(sizeof(abi::DoorbellRing));
  UniqueFd async = events_.open_async();
  doorbell_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Edge-triggered and never read: the client shares the descriptor's flags and its count, so that
  // a read could wait.
  if (doorbell_fd_) {
    doorbell_watch_ = services_.loop.watch(doorbell_fd_.get(), EPOLLIN | EPOLLET,
                                           [this](uint32_t) { services_.owner.wake(*this); });
  }
  const bool room = !is_reserved(doorbell_fd_.get()) && !is_reserved(fds.mem_file.get());
  if (!room) tell_of_shortage();
  if (!memory || !async || !doorbell_watch_ || !room) {
    reply_status(request, ENOMEM);
    return end("no memory or file descriptors left for it");
  }
  if (services_.memory.add(id(), peer_.pid, std::move(fds.mem_file)) == ProcessMemory::Way::kNone) {
    reply_status(request, EPERM);
    return end(
        "its memory cannot be reached: the kernel permits neither process_vm_readv on it, "
        "nor did it pass its /proc/self/mem");
  }
  // A pid may belong to another process once this one is gone, even while a forked child still
  // holds the socket.
  process_fd_ = open_process(peer_.pid);
  if (process_fd_) {
    // The kernel closes a process's socket before it reports its end: another process that has the
    // socket open is worth a warning.
    process_watch_ = services_.loop.watch(process_fd_.get(), EPOLLIN, [this](uint32_t) {
      end(is_hung_up(socket_.get()) ? "" : "its process is gone");
    });
  }
  // The first of a new file: all zeroes.
  queues_.doorbell_memory = std::move(*memory);
  abi::DoorbellRing& ring = queues_.doorbells();
  // Without a clock that runs there is no time after which what nobody polls would be written; and
  // where runs are explored, what a program does to a message that is under way is to be found.
  abi::Payload* payload = queues_.payload();
  if (payload != nullptr) services_.memory.watch_mappings(id(), payload->mappings);
  if (payload != nullptr && !services_.clock.is_virtual()) {
    services_.memory.share(id(), *payload, ring);
  }
  ring.is_virtual.store(services_.clock.is_virtual() ? 1 : 0, std::memory_order_relaxed);
  ring.round.store(services_.owner.round(), std::memory_order_relaxed);
  ring.asked_for.store(services_.owner.asked_for(), std::memory_order_relaxed);
  ring.pollers_per_processor.store(services_.owner.pollers_per_processor(),
                                   std::memory_order_relaxed);
  ring.device_time_ns.store(engine::nanoseconds_since_start(services_.clock.now()),
                            std::memory_order_relaxed);
  client_end_ = file_id(fds.client_end.get());
  attached_ = true;
  services_.owner.attached(*this);
  services_.engine.submit(attach);
  services_.engine.name_process(id(), peer_.pid);
  services_.owner.wake(*this);
  if (const int error = services_.engine.command(id(), request).error; error != 0) {
    reply_status(request, error);
    return end("");
  }

  abi::Reply welcome{};
  welcome.body.hello.client = id().value;
  welcome.body.hello.device_index = device_.value;
  welcome.body.hello.doorbells = queues_.doorbell_memory.range();
  welcome.body.hello.doorbells.size = sizeof(abi::DoorbellRing);
  welcome.body.hello.payload = welcome.body.hello.doorbells;
  welcome.body.hello.payload.offset += sizeof(abi::DoorbellRing);
  welcome.body.hello.payload.size = payload != nullptr ? sizeof(abi::Payload) : 0;
  const Arena::SegmentFile segment = *queues_.arena.file_of(welcome.body.hello.doorbells.segment);
  welcome.body.hello.segment_size = segment.size;
  welcome.body.hello.clock_start_ns = services_.clock.start_ns();
  welcome.body.hello.wall_start_ns = services_.clock.wall_start_ns();
  welcome.body.hello.num_comp_vectors = engine::kCompVectors;
  const int given[] = {segment.fd, doorbell_fd_.get(), async.get()};
  reply(request, welcome, given);
}

void ClientSession::reply(const abi::Request& request, abi::Reply answer,
                          std::span<const int> fds) {
  if (queues_.ended) return;  // the engine found a violation in the request
  answer.magic = abi::kMagic;
  answer.version = abi::kVersion;
  answer.op = request.op;
  answer.sequence = request.sequence;
  answer.reserved = 0;
  if (answer.error != 0) answer.body = {};
  // A socket holds hundreds of replies, and a thread waits for its own before it asks again.
  switch (send_message(socket_.get(), std::as_bytes(std::span(&answer, 1)), fds)) {
    case SendStatus::kOk:
      return;
    case SendStatus::kFull:
      return end("it does not read its replies");
    case SendStatus::kFailed:
      // Gone, or with more descriptors on their way to it than the system allows.
      return end(errno == EPIPE || errno == ECONNRESET
                     ? ""
                     : fmt::format("a reply cannot be sent: {}", std::strerror(errno)));
  }
}

void ClientSession::reply_status(const abi::Request& request, int error) {
  reply(request, refusal(error).reply, {});
}

}  // namespace rocemu::daemon
