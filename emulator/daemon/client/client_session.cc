#include "emulator/daemon/client/client_session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/other_nics.h"
#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns a descriptor that becomes readable when the process has ended; none before Linux 5.3.
UniqueFd open_process(pid_t pid) {
#ifdef SYS_pidfd_open
  if (pid > 0) return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#endif
  return {};
}

/// Returns the session of the same device whose client has `client_end` as its end of the
/// connection.
ClientSession* find_imported(SessionOwner& owner, engine::DeviceIndex device,
                             const UniqueFd& client_end) {
  const std::optional<FileId> file = file_id(client_end.get());
  ClientSession* found = file ? owner.find_by_client_end(*file) : nullptr;
  return found != nullptr && found->device() == device ? found : nullptr;
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
      requests_(
          services.loop, std::move(socket),
          [this] {
            unless_out_of_memory([this] {
              on_readable();
              return true;
            });
          },
          [this](std::string reason) { end(std::move(reason)); }) {
  queues_.id = id;
  if (!requests_.is_watched()) end("its socket cannot be watched");
}

std::string ClientSession::description() const {
  return fmt::format("client {} ({}, pid {})", id().value, command_name_, peer_.pid);
}

void ClientSession::end(std::string reason) {
  if (queues_.ended) return;
  queues_.ended = true;
  end_reason_ = std::move(reason);
  requests_.stop();
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
    end("out of memory");  // short enough to need no allocation
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
    RequestSocket::Received received = std::move(pending_->received);
    pending_.reset();
    execute(std::move(received));
    return true;
  }
  return result.worked;
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
  if (queues_.ended || pending_) return;  // the next request stays in the socket in the meantime
  std::optional<RequestSocket::Received> received = requests_.receive(!attached_);
  if (!received) return;
  if (!attached_) return execute(std::move(*received));
  // The doorbells that the client rang before the request must be handled first, because the last
  // posts to a QP precede its destruction.
  const uint32_t doorbells = RingPump::end_of(queues_);
  if (doorbells == queues_.doorbells_consumed) return execute(std::move(*received));
  pending_ = Pending{std::move(*received), doorbells};
  services_.owner.wake(*this);
}

void ClientSession::execute(RequestSocket::Received received) {
  const abi::Request& request = received.request;
  if ((request.op == abi::Op::kHello) == attached_) {
    end(attached_ ? "a second hello" : "a request before the hello");
    return;
  }
  if (request.op == abi::Op::kHello) {
    std::optional<HelloFds> fds =
        sort_hello_fds(std::move(received.fds), request.body.hello.import != 0, requests_.fd());
    if (!fds) return end("a hello with wrong file descriptors");
    return hello(request, std::move(*fds));
  }
  services_.memory.withdraw_payload(id());
  DirectCopies& copies = services_.memory.copies;
  if (copies.end_of(id())) {
    // Messages that were posted before the request are sent before it.
    copies.suspend(true);
    services_.engine.submit(engine::MemoryReady{});
    copies.suspend(false);
  }
  if (request.op == abi::Op::kMemoryMayBlock) {
    return requests_.reply_status(request, services_.memory.expect_waits(id()));
  }
  if (request.refusal != 0) {
    // A request that was refused by a rule registers and destroys nothing.
  } else if (request.op == abi::Op::kRegMr) {
    services_.memory.on_registration(id(), request.body.reg_mr.address, request.body.reg_mr.length);
  } else if (request.op == abi::Op::kReregMr) {
    const auto& region = request.body.rereg_mr;
    services_.memory.on_registration(id(), region.address, region.length);
  }
  if (abi::destroys(request.op) && request.refusal == 0) services_.owner.destroyed();
  services_.memory.expect_messages(false);
  const Answer answer = objects_.execute(request, received.fds);
  services_.memory.expect_messages(true);
  if (answer.violation != nullptr) return end(answer.violation);
  if (request.op == abi::Op::kModifyQp && answer.reply.error == 0 &&
      self_connections_.has_met_itself(request)) {
    explain_meeting_itself(peer_.pid, request.body.modify_qp.qpn);
  }
  const engine::DeviceProfile* const profile = services_.engine.profile(device_);
  if (profile != nullptr)
    profile_messages_.explain(*profile, request, answer.reply.error, peer_.pid);
  std::vector<int> given;
  for (const UniqueFd& fd : answer.fds) given.push_back(fd.get());
  requests_.reply(request, answer.reply, given);
}

void ClientSession::hello(const abi::Request& request, HelloFds fds) {
  engine::AttachClient attach{id(), device_};
  if (fds.imported) {
    const ClientSession* imported = find_imported(services_.owner, device_, fds.imported);
    if (imported == nullptr) return requests_.reply_status(request, EINVAL);
    attach.shares_with = imported->id();
  }
  // The ring and the payload share one piece of memory, since both must be in the first segment. If
  // there is no space for the payload, for example because of a limit on file sizes, only the ring
  // gets memory; everything works without the payload, too.
  std::optional<Arena::Piece> memory =
      queues_.arena.take(sizeof(abi::DoorbellRing) + sizeof(abi::Payload));
  if (!memory) memory = queues_.arena.take(sizeof(abi::DoorbellRing));
  UniqueFd async = events_.open_async();
  doorbell_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // The watch is edge-triggered, and the eventfd is never read: the client shares its flags and its
  // count, so a read could block.
  if (doorbell_fd_) {
    doorbell_watch_ = services_.loop.watch(doorbell_fd_.get(), EPOLLIN | EPOLLET,
                                           [this](uint32_t) { services_.owner.wake(*this); });
  }
  const bool room = !is_reserved(doorbell_fd_.get()) && !is_reserved(fds.mem_file.get());
  if (!room) tell_of_shortage();
  if (!memory || !async || !doorbell_watch_ || !room) {
    requests_.reply_status(request, ENOMEM);
    return end("the daemon has no memory or file descriptors left for this client");
  }
  if (services_.memory.add(id(), peer_.pid, std::move(fds.mem_file)) == ProcessMemory::Way::kNone) {
    requests_.reply_status(request, EPERM);
    return end(
        "its memory cannot be reached: the kernel does not permit "
        "process_vm_readv, and the process did not pass its /proc/self/mem");
  }
  // The process is watched because its pid can belong to another process after its end, even while
  // a forked child still has the socket.
  process_fd_ = open_process(peer_.pid);
  if (process_fd_) {
    // The kernel closes the sockets of a process before it reports the end of the process. If the
    // socket is still open, another process has it, which is worth a warning.
    process_watch_ = services_.loop.watch(process_fd_.get(), EPOLLIN, [this](uint32_t) {
      end(requests_.is_hung_up() ? "" : "its process has ended");
    });
  }
  // This is the first piece of a new file, so it contains zeros.
  queues_.doorbell_memory = std::move(*memory);
  // If memory must be exact, as in lockstep, messages are written to memory at once. Payload beside
  // completions would be written only after 1 to 2 ms of real time if no thread polls it, and
  // lockstep has no real time.
  abi::Payload* payload = queues_.payload();
  if (payload != nullptr) services_.memory.watch_mappings(id(), payload->mappings);
  if (payload != nullptr && !services_.has_exact_memory) {
    services_.memory.share(id(), *payload, queues_.doorbells());
  }
  signals_.begin({.is_virtual = services_.clock.is_virtual(),
                  .has_exact_memory = services_.has_exact_memory,
                  .round = services_.owner.round(),
                  .asked_for = services_.owner.asked_for(),
                  .pollers_per_processor = services_.owner.pollers_per_processor(),
                  .now = services_.clock.now()});
  client_end_ = file_id(fds.client_end.get());
  attached_ = true;
  services_.owner.attached(*this);
  services_.engine.submit(attach);
  services_.engine.name_process(id(), peer_.pid);
  services_.owner.wake(*this);
  if (const int error = services_.engine.command(id(), request).error; error != 0) {
    requests_.reply_status(request, error);
    return end("");
  }

  const Arena::SegmentFile segment =
      *queues_.arena.file_of(queues_.doorbell_memory.range().segment);
  const engine::DeviceProfile* const profile = services_.engine.profile(device_);
  const int given[] = {segment.fd, doorbell_fd_.get(), async.get()};
  requests_.reply(request,
                  welcome(queues_, device_, segment, services_.clock, services_.fills_undefined,
                          profile != nullptr ? profile->posts : abi::PostRules{}),
                  given);
}

}  // namespace rocemu::daemon
