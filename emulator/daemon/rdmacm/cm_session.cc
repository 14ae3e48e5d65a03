#include "emulator/daemon/rdmacm/cm_session.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/foreign_descriptors.h"

namespace rocemu::daemon {
namespace {

using abi::ucma::Command;
using abi::ucma::EventResponse;
using abi::ucma::EventType;
using engine::CmReply;

uint64_t cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

/// Returns the beginning of a command. If the command is too short, the rest of the struct is zero,
/// and the engine refuses the command.
template <class Struct>
Struct copied(std::span<const std::byte> bytes) {
  Struct value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

CmReply with_events_reported(CmReply reply, uint32_t count) {
  const abi::ucma::EventsReported response{count};
  if (reply.response.size() >= sizeof response) {
    std::memcpy(reply.response.data(), &response, sizeof response);
  }
  return reply;
}

}  // namespace

CmSession::CmSession(const Services& services, engine::CmChannelId channel, UniqueFd socket,
                     PeerCredentials peer)
    : services_(services),
      channel_(channel),
      peer_(peer),
      socket_(std::move(socket)),
      events_(socket_.get()) {
  watch_ =
      services_.loop.watch(socket_.get(), EPOLLIN, [this](uint32_t events) { on_ready(events); });
  services_.engine.submit(engine::OpenCmChannel{channel_});
  services_.engine.name_process(channel_, peer_.pid);
  if (!watch_) end("its socket cannot be watched");
}

void CmSession::end(std::string reason) {
  if (ended_) return;
  ended_ = true;
  end_reason_ = std::move(reason);
  watch_.reset();
  services_.owner.ended(*this);
}

uint64_t CmSession::inode() const {
  struct stat status {};
  return fstat(socket_.get(), &status) == 0 ? status.st_ino : 0;
}

void CmSession::deliver(const EventResponse& event) {
  if (ended_) return;
  if (!events_.deliver(event)) return end("an event channel has too many unread events");
  watch_for_room();
}

void CmSession::watch_for_room() {
  if (watch_) watch_.set_events(events_.waiting() ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void CmSession::on_ready(uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !events_.flush()) watch_for_room();
  if ((events & ~EPOLLOUT) != 0) receive();
}

void CmSession::receive() {
  std::array<std::byte, sizeof(abi::ucma::CommandHeader) + abi::ucma::kMaxCommand> buffer;
  Message message = receive_message(socket_.get(), buffer);
  set_foreign_aside(message.fds, /*memory=*/false);
  switch (message.status) {
    case Message::Status::kNothing:
      return;
    case Message::Status::kClosed:
      return end("");
    case Message::Status::kTruncated:
      return end("a command that is too long or has too many file descriptors");
    case Message::Status::kOk:
      break;
  }
  const auto header = copied<abi::ucma::CommandHeader>(std::span(buffer).first(message.size));
  if (message.size < sizeof header || header.magic != abi::ucma::kMagic ||
      header.version != abi::ucma::kVersion || header.in_size != message.size - sizeof header) {
    return end("a message that is not of the connection manager's protocol");
  }
  if (header.command == Command::kGetEvent) {
    ask(header.command, std::span(buffer).subspan(sizeof header, header.in_size), 0);
    return;
  }
  if (message.fds_lost) {
    // If the descriptor of the reply's socket was lost, no reply can be sent. The client notices at
    // its own end of that socket that ours was closed.
    tell_of_shortage();
    if (!message.fds.empty()) send_reply(message.fds[0].get(), {ENFILE, {}});
    return;
  }
  if (message.fds.size() < 2) return end("a command without a socket for its reply");
  const std::span<const std::byte> in =
      std::span(buffer).subspan(sizeof header, message.size - sizeof header);
  execute({header, in, std::move(message.fds)});
}

void CmSession::execute(const Arrived& arrived) {
  if (cookie_ == 0) cookie_ = cookie_of(arrived.fds[1].get());
  send_reply(arrived.fds[0].get(), answer(arrived));
}

void CmSession::send_reply(int socket, CmReply reply) {
  if (reply.error != 0) reply.response.clear();
  abi::ucma::ReplyHeader header{abi::ucma::kMagic, abi::ucma::kVersion, reply.error,
                                static_cast<uint32_t>(reply.response.size())};
  iovec parts[] = {{&header, sizeof header}, {reply.response.data(), reply.response.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  // The requesting thread may have ended meanwhile, although its channel still exists.
  if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET) {
    end(fmt::format("a reply cannot be sent: {}", std::strerror(errno)));
  }
}

CmReply CmSession::answer(const Arrived& arrived) {
  switch (arrived.header.command) {
    case Command::kDestroyId:
      return destroy_id(arrived);
    case Command::kLeaveMcast:
      return leave_mcast(arrived);
    case Command::kMigrateId:
      return migrate_id(arrived);
    default:
      return ask(arrived.header.command, arrived.in, arrived.header.out_size);
  }
}

CmReply CmSession::ask(Command command, std::span<const std::byte> in, uint32_t out_size) {
  return services_.engine.cm_command({channel_, command, in, out_size});
}

CmReply CmSession::destroy_id(const Arrived& arrived) {
  CmReply reply = ask(Command::kDestroyId, arrived.in, arrived.header.out_size);
  if (reply.error != 0) return reply;
  const uint32_t id = copied<abi::ucma::DestroyId>(arrived.in).id;
  const auto unread = events_.take_back(
      client_end(arrived), [id](const EventResponse& event) { return counted_for(event) == id; });
  watch_for_room();
  // The program never gets the ids in unread connection requests, so they are destroyed.
  for (const EventResponse& event : unread) {
    if (event.event != EventType::kConnectRequest) continue;
    const abi::ucma::DestroyId destroy{0, event.id, 0};
    ask(Command::kDestroyId, std::as_bytes(std::span(&destroy, 1)),
        sizeof(abi::ucma::EventsReported));
  }
  return with_events_reported(std::move(reply), events_.take_reported(id).all);
}

CmReply CmSession::leave_mcast(const Arrived& arrived) {
  CmReply reply = ask(Command::kLeaveMcast, arrived.in, arrived.header.out_size);
  if (reply.error != 0) return reply;
  const uint32_t group = copied<abi::ucma::DestroyId>(arrived.in).id;
  events_.take_back(client_end(arrived), [group](const EventResponse& event) {
    return is_multicast(event) && event.id == group;
  });
  watch_for_room();
  return with_events_reported(std::move(reply), events_.take_reported_of_group(group));
}

CmReply CmSession::migrate_id(const Arrived& arrived) {
  auto migration = copied<abi::ucma::MigrateId>(arrived.in);
  CmSession* old = arrived.fds.size() < 3
                       ? nullptr
                       : services_.owner.with_cookie(cookie_of(arrived.fds[2].get()));
  if (old == nullptr) return {EINVAL, {}};
  migration.fd = old->channel().value;
  CmReply reply = ask(
      Command::kMigrateId,
      arrived.in.size() < sizeof migration ? arrived.in : std::as_bytes(std::span(&migration, 1)),
      arrived.header.out_size);
  if (reply.error != 0 || old == this) {
    return with_events_reported(std::move(reply), events_.reported(migration.id));
  }
  const auto unread = old->events_.take_back(arrived.fds[2].get(), [&](const EventResponse& event) {
    return counted_for(event) == migration.id;
  });
  old->watch_for_room();
  CmEvents::Reported reported = old->events_.take_reported(migration.id);
  const uint32_t count = reported.all;
  events_.put_reported(migration.id, std::move(reported));
  for (const EventResponse& event : unread) {
    if (event.event == EventType::kConnectRequest) {
      const abi::ucma::MigrateId child{0, event.id, old->channel().value};
      ask(Command::kMigrateId, std::as_bytes(std::span(&child, 1)),
          sizeof(abi::ucma::EventsReported));
    }
    events_.deliver(event);
  }
  watch_for_room();
  return with_events_reported(std::move(reply), count);
}

int CmSession::client_end(const Arrived& arrived) const {
  const int fd = arrived.fds[1].get();
  return cookie_ != 0 && cookie_of(fd) == cookie_ ? fd : -1;
}

}  // namespace rocemu::daemon
