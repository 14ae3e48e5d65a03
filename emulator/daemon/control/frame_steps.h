// What {"command":"step"} asks for: while the NIC is paused, frames arrive one at a time. Programs
// have their turn before the first, after each and before time moves on to a timeout; whoever calls
// advance() knows when that is over.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

class FrameSteps {
 public:
  /// `host` outlives this.
  explicit FrameSteps(EngineHost& host) : host_(host) {}

  /// Throws ControlServer::Refusal. `done` is called when the last of the frames has arrived and
  /// programs have seen it, or when none will come.
  void begin(const Json& request, ControlServer::Done done);
  bool pending() const { return !requests_.empty(); }

  /// Programs wait, and nothing of what they did is left to do: the next frame arrives, or time
  /// moves on to what is due next, or the request is answered. True if there was anything to do.
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
