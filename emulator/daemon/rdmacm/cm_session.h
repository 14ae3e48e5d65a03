// One rdma_cm event channel, which is a connection to the socket rdma_cm with the protocol of
// abi/ucma.h. Commands go to the engine unchanged. This class only handles what depends on the
// events that the program has read.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/abi/ucma.h"
#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/rdmacm/cm_event_delivery.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class CmSession;

/// The owner of the sessions, which they notify and query
class CmSessionOwner {
 public:
  virtual ~CmSessionOwner() = default;
  /// Notes that the session has ended. Does not destroy it immediately.
  virtual void ended(CmSession& session) = 0;
  /// Returns the session whose program has the socket with this cookie as its end; null if there is
  /// none.
  virtual CmSession* with_cookie(uint64_t cookie) = 0;
};

class CmSession {
 public:
  struct Services {
    EnginePort& engine;
    EventLoop& loop;
    CmSessionOwner& owner;
  };

  CmSession(const Services& services, engine::CmChannelId channel, UniqueFd socket,
            PeerCredentials peer);
  CmSession(const CmSession&) = delete;
  CmSession& operator=(const CmSession&) = delete;

  void deliver(const abi::ucma::EventResponse& event);

  engine::CmChannelId channel() const { return channel_; }
  bool has_ended() const { return ended_; }
  /// Returns the reason of the end, which is empty after an orderly end.
  const std::string& end_reason() const { return end_reason_; }
  pid_t pid() const { return peer_.pid; }
  /// Returns SO_COOKIE of the program's end of the socket, or 0 before its first command.
  uint64_t cookie() const { return cookie_; }
  /// Returns the inode of our end of the socket, or 0 if the system does not report it.
  uint64_t inode() const;

 private:
  struct Arrived {
    abi::ucma::CommandHeader header;
    std::span<const std::byte> in;
    std::vector<UniqueFd> fds;
  };

  void on_ready(uint32_t events);
  void receive();
  void execute(const Arrived& arrived);
  void send_reply(int socket, engine::CmReply reply);
  engine::CmReply answer(const Arrived& arrived);
  engine::CmReply destroy_id(const Arrived& arrived);
  engine::CmReply leave_mcast(const Arrived& arrived);
  engine::CmReply migrate_id(const Arrived& arrived);
  engine::CmReply ask(abi::ucma::Command command, std::span<const std::byte> in, uint32_t out_size);
  void end(std::string reason);
  void watch_for_room();
  /// Returns the program's own descriptor of this channel, from those that came with a command; -1
  /// if it is not among them.
  int client_end(const Arrived& arrived) const;

  Services services_;
  engine::CmChannelId channel_;
  PeerCredentials peer_;
  uint64_t cookie_ = 0;
  bool ended_ = false;
  std::string end_reason_;
  UniqueFd socket_;
  EventLoop::Watch watch_;  // after the fd: destroyed first
  CmEvents events_;
};

}  // namespace rocemu::daemon
