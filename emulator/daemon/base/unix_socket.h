// Unix-domain sockets: listening, identifying the peer, and messages with file descriptors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// The credentials of a peer (SO_PEERCRED). The pid is 0 for a peer outside our pid namespace.
struct PeerCredentials {
  pid_t pid;
  uid_t uid;
};

/// The maximum length of a path in sockaddr_un
inline constexpr size_t kMaxSocketPath = 107;

/// Creates a non-blocking listening socket at `path`. `type` is SOCK_STREAM or SOCK_SEQPACKET.
/// Throws StartError.
UniqueFd listen_at(const std::string& path, int type);

std::optional<PeerCredentials> peer_credentials(int socket);

/// The identity of a file, which shows whether two descriptors are for the same file
struct FileId {
  dev_t device;
  ino_t inode;
  bool operator==(const FileId&) const = default;
};
std::optional<FileId> file_id(int fd);

/// Returns whether `fd` is the connecting end of a SOCK_SEQPACKET connection to the listener that
/// accepted `accepted`.
bool is_client_of_same_listener(int fd, int accepted);

/// Returns whether a process listens at `path`.
bool is_served(const std::string& path);

struct Message {
  enum class Status { kOk, kNothing, kClosed, kTruncated };
  Status status;
  size_t size = 0;
  std::vector<UniqueFd> fds;  // closed with the message unless they are moved out
  bool fds_lost = false;      // some were lost: the system had no number for them
};

/// Receives one SOCK_SEQPACKET message without waiting. kTruncated means that the message is longer
/// than the buffer, or has more descriptors than any valid message.
Message receive_message(int socket, std::span<std::byte> buffer);

enum class SendStatus { kOk, kFull, kFailed };

/// Sends one message without waiting.
SendStatus send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace rocemu::daemon
