// The command {"command":"step"}: while the NIC is paused, frames arrive one at a time. Programs
// have time to respond before the first frame, after each frame, and before the clock advances to a
// timeout. The caller of advance() detects when programs have responded.
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

  /// Begins to execute the request. Throws ControlServer::Refusal. Calls `done` when the last of
  /// the requested frames has arrived and programs have seen it, or when no more frames can arrive.
  void begin(const Json& request, ControlServer::Done done);
  bool pending() const { return !requests_.empty(); }

  /// Continues the oldest request: delivers the next frame, advances the clock to the next
  /// deadline, or answers the request. Must be called when all programs wait and all their actions
  /// have been handled. Returns whether there was anything to do.
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
