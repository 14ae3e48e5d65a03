// The command {"command":"step"}: while the NIC is paused, frames arrive one at a time. Programs
// have their turn before the first frame, after each frame and before the clock advances to a
// timeout; the caller of advance() detects when a turn is over.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

class FrameSteps {
 public:
  /// `host` must outlive this object.
  explicit FrameSteps(EngineHost& host) : host_(host) {}

  /// Throws ControlServer::Refusal. `done` is called when the last of the frames has arrived and
  /// programs have seen it, or when no more frames can arrive.
  void begin(const Json& request, ControlServer::Done done);
  bool pending() const { return !requests_.empty(); }

  /// Called when programs wait and all their actions have been handled: the next frame arrives, or
  /// the clock advances to the next deadline, or the request is answered. Returns whether there was
  /// anything to do.
  bool advance();

 private:
  struct Request {
    uint64_t frames_left;
    Json frames;
    int moves = 0;  // of time, since the latest frame
    ControlServer::Done done;
  };

  bool move_time(Request& request);
  Json deliver_next_frame();

  EngineHost& host_;
  std::deque<Request> requests_;
};

}  // namespace rocemu::daemon
