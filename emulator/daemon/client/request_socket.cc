#include "emulator/daemon/client/request_socket.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/foreign_descriptors.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/client/client_objects.h"

namespace rocemu::daemon {
namespace {

/// The buffer has one byte more than a request, so that a message that is too long is detected.
using RequestBuffer = std::array<std::byte, sizeof(abi::Request) + 1>;
constexpr size_t kHeaderSize = offsetof(abi::Request, body);

}  // namespace

RequestSocket::RequestSocket(EventLoop& loop, UniqueFd socket, std::function<void()> on_readable,
                             End end)
    : socket_(std::move(socket)),
      end_(std::move(end)),
      watch_(loop.watch(socket_.get(), EPOLLIN,
                        [on_readable = std::move(on_readable)](uint32_t) { on_readable(); })) {}

bool RequestSocket::is_hung_up() const {
  pollfd entry{socket_.get(), 0, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

void RequestSocket::stop() {
  has_stopped_ = true;
  watch_.reset();
}

std::optional<RequestSocket::Received> RequestSocket::receive(bool takes_memory) {
  RequestBuffer buffer;
  Message message = receive_message(socket_.get(), buffer);
  set_foreign_aside(message.fds, takes_memory);
  switch (message.status) {
    case Message::Status::kNothing:
      return std::nullopt;
    case Message::Status::kClosed:
      end_("");
      return std::nullopt;
    case Message::Status::kTruncated:
      end_("a message that is too long or has too many file descriptors");
      return std::nullopt;
    case Message::Status::kOk:
      break;
  }
  Received received{};
  abi::Request& request = received.request;
  std::memcpy(&request, buffer.data(), std::min(message.size, sizeof request));
  if (message.size < kHeaderSize || request.magic != abi::kMagic) {
    end_("a message that is not of the control protocol");
    return std::nullopt;
  }
  if (request.version != abi::kVersion) {
    reply_status(request, EPROTO);
    end_(fmt::format("its control protocol has version {}, but this daemon has version {}",
                     request.version, abi::kVersion));
    return std::nullopt;
  }
  if (message.size != sizeof request) {
    end_(fmt::format("a request of {} bytes instead of {}", message.size, sizeof request));
    return std::nullopt;
  }
  if (message.fds_lost) {
    tell_of_shortage();
    reply_status(request, ENFILE);
    return std::nullopt;
  }
  received.fds = std::move(message.fds);
  return received;
}

void RequestSocket::reply(const abi::Request& request, abi::Reply answer,
                          std::span<const int> fds) {
  if (has_stopped_) return;  // the engine found a violation in the request
  answer.magic = abi::kMagic;
  answer.version = abi::kVersion;
  answer.op = request.op;
  answer.sequence = request.sequence;
  answer.reserved = 0;
  if (answer.error != 0) answer.body = {};
  // The socket has space for hundreds of replies, and a thread waits for its reply before it sends
  // its next request. So the socket is full only if the client does not read.
  switch (send_message(socket_.get(), std::as_bytes(std::span(&answer, 1)), fds)) {
    case SendStatus::kOk:
      return;
    case SendStatus::kFull:
      return end_("it does not read its replies");
    case SendStatus::kFailed:
      // The client has ended, or has more descriptors in transit than the system allows.
      return end_(errno == EPIPE || errno == ECONNRESET
                      ? ""
                      : fmt::format("a reply cannot be sent: {}", std::strerror(errno)));
  }
}

void RequestSocket::reply_status(const abi::Request& request, int error) {
  reply(request, refusal(error).reply, {});
}

}  // namespace rocemu::daemon
