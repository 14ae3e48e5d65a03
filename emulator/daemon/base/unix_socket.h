// Unix-domain sockets: listening, who is at the other end, messages with file descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// SO_PEERCRED. The pid is 0 for a peer outside our pid namespace.
struct PeerCredentials {
  pid_t pid;
  uid_t uid;
};

/// The longest path that fits into sockaddr_un.
inline constexpr size_t kMaxSocketPath = 107;

/// A non-blocking listening socket. `type` is SOCK_STREAM or SOCK_SEQPACKET. Throws StartError.
UniqueFd listen_at(const std::string& path, int type);

std::optional<PeerCredentials> peer_credentials(int socket);

/// What a descriptor refers to, by which two descriptors of one thing can be recognised.
struct FileId {
  dev_t device;
  ino_t inode;
  bool operator==(const FileId&) const = default;
};
std::optional<FileId> file_id(int fd);

/// Whether `fd` is an end of a SOCK_SEQPACKET connection to the listener that `accepted` is from.
bool is_client_of_same_listener(int fd, int accepted);

/// Whether a process listens at `path`. False if there is no such socket or nobody behind it.
bool is_served(const std::string& path);

struct Message {
  enum class Status { kOk, kNothing, kClosed, kTruncated };
  Status status;
  size_t size = 0;
  std::vector<UniqueFd> fds;  // closed with the message unless somebody takes them
  bool fds_lost = false;      // some of them: the system had no number for them
};

/// Receives one SOCK_SEQPACKET message without waiting. kTruncated: longer than the buffer, or with
/// more descriptors than any of our messages has.
Message receive_message(int socket, std::span<std::byte> buffer);

enum class SendStatus { kOk, kFull, kFailed };

/// Sends one message without waiting.
SendStatus send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace rocemu::daemon
