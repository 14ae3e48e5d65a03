#include "emulator/daemon/client_session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace rocemu::daemon {
namespace {

/// A message longer than any is recognised by filling this.
using RequestBuffer = std::array<std::byte, sizeof(abi::Request) + 1>;
constexpr size_t kHeaderSize = offsetof(abi::Request, body);

std::string command_name_of(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
  return name.empty() ? "?" : name;
}

/// A descriptor that becomes readable when the process is gone; none before Linux 5.3.
UniqueFd open_process(pid_t pid) {
#ifdef SYS_pidfd_open
  if (pid > 0) return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#endif
  return {};
}

/// Only the descriptor that is the socket's own client end may be read from.
int client_end_among(const std::vector<UniqueFd>& fds, const EventSocket& socket) {
  for (const UniqueFd& fd : fds) {
    if (socket.is_client_end(fd.get())) return fd.get();
  }
  return -1;
}

bool is_engine_op(abi::Op op) {
  return op >= abi::Op::kQueryDevice && op <= abi::Op::kDestroyAh;
}

}  // namespace

ClientSession::ClientSession(const Services& services, engine::ClientId id,
                             engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer)
    : services_(services),
      device_(device),
      peer_(peer),
      command_name_(command_name_of(peer.pid)),
      ring_pump_(services.engine),
      socket_(std::move(socket)) {
  queues_.id = id;
  socket_watch_ = services_.loop.watch(socket_.get(), EPOLLIN, [this](uint32_t) { on_readable(); });
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

bool ClientSession::pump() {
  if (queues_.ended || !attached_) return false;
  const RingPump::Result result = ring_pump_.run(queues_, kPumpBudget);
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

void ClientSession::set_daemon_sleeping(bool sleeping) {
  if (attached_) {
    queues_.doorbells().daemon_sleeping.store(sleeping ? 1 : 0, std::memory_order_seq_cst);
  }
}

bool ClientSession::has_doorbells() const {
  return attached_ &&
         queues_.doorbells().producer.load(std::memory_order_acquire) != queues_.doorbells_consumed;
}

// ---- Events ---------------------------------------------------------------------------------

void ClientSession::deliver(const engine::CompletionEvent& event) {
  const auto found = channels_.find(event.channel.value);
  if (found == channels_.end()) return;  // the client closed it
  if (!found->second->deliver(abi::CompletionEventRecord{event.user_handle})) {
    end("a completion channel has too many unread events");
  }
}

void ClientSession::deliver(const engine::AsyncEvent& event) {
  if (async_ == nullptr) return;
  if (!async_->deliver(
          abi::AsyncEventRecord{event.element, static_cast<uint32_t>(event.type), 0})) {
    end("too many unread asynchronous events");
  }
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
  pending->doorbells = queues_.doorbells().producer.load(std::memory_order_acquire);
  pending_ = std::move(pending);
  services_.owner.wake(*this);
  pump();
}

std::optional<ClientSession::Pending> ClientSession::receive() {
  RequestBuffer buffer;
  Message message = receive_message(socket_.get(), buffer);
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
  pending.fds = std::move(message.fds);
  return pending;
}

void ClientSession::refuse_version(const abi::Request& request) {
  reply_error(request, EPROTO);
  end(fmt::format("it speaks version {} of the control protocol, this daemon {}", request.version,
                  abi::kVersion));
}

void ClientSession::execute(Pending pending) {
  const abi::Request& request = pending.request;
  if ((request.op == abi::Op::kHello) == attached_) {
    end(attached_ ? "a second hello" : "a request before the hello");
    return;
  }
  switch (request.op) {
    case abi::Op::kHello:
      return hello(request, std::move(pending.fds));
    case abi::Op::kCreateChannel:
      return create_channel(request);
    case abi::Op::kCreateCq:
      return create_cq(request);
    case abi::Op::kCreateQp:
      return create_qp(request);
    case abi::Op::kDestroyCq:
      return destroy_cq(request, pending.fds);
    case abi::Op::kDestroyQp:
      return destroy_qp(request, pending.fds);
    default:
      if (!is_engine_op(request.op)) return reply_error(request, EOPNOTSUPP);
      return reply(request, services_.engine.command(id(), request));
  }
}

void ClientSession::hello(const abi::Request& request, std::vector<UniqueFd> fds) {
  UniqueFd mem_file = fds.empty() ? UniqueFd() : std::move(fds.front());
  std::optional<NewSharedMemory> memory =
      NewSharedMemory::create("rocemu-context", sizeof(abi::DoorbellRing));
  EventSocket::Created async = EventSocket::create(services_.loop, sizeof(abi::AsyncEventRecord),
                                                   [this] { async_.reset(); });
  doorbell_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Edge-triggered and never read: the client shares the descriptor's flags and its count, so that
  // a read could wait.
  if (doorbell_fd_) {
    doorbell_watch_ = services_.loop.watch(doorbell_fd_.get(), EPOLLIN | EPOLLET,
                                           [this](uint32_t) { services_.owner.wake(*this); });
  }
  if (!memory || async.socket == nullptr || !doorbell_watch_) {
    reply_error(request, ENOMEM);
    return end("no memory or file descriptors left for it");
  }
  if (services_.memory.add(id(), peer_.pid, std::move(mem_file)) == ProcessMemory::Way::kNone) {
    reply_error(request, EPERM);
    return end(
        "its memory cannot be reached: the kernel permits neither process_vm_readv on it, "
        "nor did it pass its /proc/self/mem");
  }
  // A pid may belong to another process once this one is gone, even while a forked child still
  // holds the socket.
  process_fd_ = open_process(peer_.pid);
  if (process_fd_) {
    process_watch_ = services_.loop.watch(process_fd_.get(), EPOLLIN,
                                          [this](uint32_t) { end("its process is gone"); });
  }
  async_ = std::move(async.socket);
  queues_.doorbell_memory = std::move(memory->memory);
  attached_ = true;
  services_.engine.submit(engine::AttachClient{id(), device_});
  services_.owner.wake(*this);

  abi::Reply answer{};
  answer.body.hello.client = id().value;
  answer.body.hello.device_index = device_.value;
  answer.body.hello.memory_size = queues_.doorbell_memory.size();
  reply(request, answer, {memory->file.get(), doorbell_fd_.get(), async.client_end.get()});
}

void ClientSession::create_channel(const abi::Request& request) {
  // The inode is known only once the channel exists; the callback runs later still.
  const auto inode = std::make_shared<uint64_t>(0);
  EventSocket::Created channel =
      EventSocket::create(services_.loop, sizeof(abi::CompletionEventRecord),
                          [this, inode] { channels_.erase(*inode); });
  if (channel.socket == nullptr) return reply_error(request, EMFILE);
  *inode = channel.socket->inode();
  abi::Reply answer{};
  answer.body.create_channel.inode = *inode;
  channels_.insert_or_assign(*inode, std::move(channel.socket));
  reply(request, answer, {channel.client_end.get()});
}

void ClientSession::create_cq(const abi::Request& request) {
  const auto& wanted = request.body.create_cq;
  if (wanted.channel_inode != 0 && !channels_.contains(wanted.channel_inode)) {
    return reply_error(request, EINVAL);
  }
  abi::Reply answer = services_.engine.command(id(), request);
  if (answer.error != 0 || queues_.ended) return reply(request, answer);
  auto& made = answer.body.create_cq;
  made.memory_size = cq_memory_size(made.capacity);
  std::optional<NewSharedMemory> memory = NewSharedMemory::create("rocemu-cq", made.memory_size);
  if (!memory) {
    destroy(abi::Op::kDestroyCq, made.handle);
    return reply_error(request, ENOMEM);
  }
  queues_.cqs.insert_or_assign(
      made.handle, CompletionQueue(std::move(memory->memory), made.capacity, wanted.user_handle,
                                   engine::ChannelId{wanted.channel_inode}));
  reply(request, answer, {memory->file.get()});
}

void ClientSession::create_qp(const abi::Request& request) {
  abi::Reply answer = services_.engine.command(id(), request);
  if (answer.error != 0 || queues_.ended) return reply(request, answer);
  auto& made = answer.body.create_qp;
  const QpMemoryPlan plan = plan_qp_memory(made.cap);
  std::optional<NewSharedMemory> memory = NewSharedMemory::create("rocemu-qp", plan.size);
  if (!memory) {
    destroy(abi::Op::kDestroyQp, made.qpn);
    return reply_error(request, ENOMEM);
  }
  made.send = plan.send;
  made.recv = plan.recv;
  made.memory_size = plan.size;
  const std::byte* base = memory->memory.data();
  QueuePair qp;
  qp.send = {base + plan.send.offset, plan.send.slots, plan.send.stride, 0};
  qp.recv = {base + plan.recv.offset, plan.recv.slots, plan.recv.stride, 0};
  qp.user_handle = request.body.create_qp.user_handle;
  qp.memory = std::move(memory->memory);
  queues_.qps.insert_or_assign(made.qpn, std::move(qp));
  reply(request, answer, {memory->file.get()});
}

void ClientSession::destroy_cq(const abi::Request& request, const std::vector<UniqueFd>& fds) {
  abi::Reply answer = services_.engine.command(id(), request);
  const auto found = queues_.cqs.find(request.body.object.handle);
  if (answer.error != 0 || found == queues_.cqs.end()) return reply(request, answer);
  const CompletionQueue& cq = found->second;
  answer.body.destroyed = {};
  if (const auto channel = channels_.find(cq.channel().value); channel != channels_.end()) {
    answer.body.destroyed.completion_events =
        channel->second->forget(cq.user_handle(), client_end_among(fds, *channel->second));
  }
  if (async_ != nullptr) {
    answer.body.destroyed.async_events =
        async_->forget(cq.user_handle(), client_end_among(fds, *async_));
  }
  queues_.cqs.erase(found);
  reply(request, answer);
}

void ClientSession::destroy_qp(const abi::Request& request, const std::vector<UniqueFd>& fds) {
  abi::Reply answer = services_.engine.command(id(), request);
  const auto found = queues_.qps.find(request.body.object.handle);
  if (answer.error != 0 || found == queues_.qps.end()) return reply(request, answer);
  answer.body.destroyed = {};
  if (async_ != nullptr) {
    answer.body.destroyed.async_events =
        async_->forget(found->second.user_handle, client_end_among(fds, *async_));
  }
  queues_.qps.erase(found);
  reply(request, answer);
}

abi::Reply ClientSession::destroy(abi::Op op, uint32_t handle) {
  abi::Request request{};
  request.magic = abi::kMagic;
  request.version = abi::kVersion;
  request.op = op;
  request.body.object.handle = handle;
  return services_.engine.command(id(), request);
}

void ClientSession::reply(const abi::Request& request, abi::Reply answer,
                          std::initializer_list<int> fds) {
  if (queues_.ended) return;  // the engine found a violation in the request
  answer.magic = abi::kMagic;
  answer.version = abi::kVersion;
  answer.op = request.op;
  answer.sequence = request.sequence;
  answer.reserved = 0;
  if (answer.error != 0) answer.body = {};
  // A socket holds hundreds of replies, and a thread waits for its own before it asks again.
  switch (send_message(socket_.get(), std::as_bytes(std::span(&answer, 1)),
                       std::span(fds.begin(), fds.size()))) {
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

void ClientSession::reply_error(const abi::Request& request, int error) {
  abi::Reply answer{};
  answer.error = error;
  reply(request, answer);
}

}  // namespace rocemu::daemon
