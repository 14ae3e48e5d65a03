// What one shard of the fabric (engine/base/shard.h) has to do with the others, each of which runs
// in a thread of its own: its frames go into their inboxes, and theirs come out of its own.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "emulator/daemon/base/network_port.h"
#include "emulator/daemon/net/frame_inbox.h"
#include "emulator/daemon/run/engine_host.h"

namespace rocemu::daemon {

/// Of all parts.
struct Inboxes {
  FrameInbox* connections = nullptr;
  std::vector<FrameInbox*> devices{};
};

class ShardLink : public NetworkPort, public OtherShards {
 public:
  /// `waker` is that of the part's thread. `arrived` is called before frames are given to the
  /// engine.
  ShardLink(Waker& waker, EnginePort& engine, std::function<void()> arrived);

  FrameInbox& inbox() { return inbox_; }
  /// No frame is on its way, neither out nor in.
  bool is_idle() const { return inbox_.is_empty() && !is_congested(); }
  /// Before any frame moves.
  void connect(const Inboxes& inboxes);

  void forward(engine::ForwardFrame frame) override;

  bool receive(engine::Instant now) override;
  bool flush(engine::Instant now) override;
  bool is_congested() const override;
  bool has_settled(engine::Instant now, engine::Instant deadline) override;
  std::optional<engine::Duration> longest_wait() const override;
  bool fall_asleep() override { return inbox_.fall_asleep(); }
  void stay_awake() override { inbox_.stay_awake(); }

 private:
  struct Way {
    FrameInbox* to;
    bool fresh = false;                          // put since it was told
    std::deque<engine::ForwardFrame> waiting{};  // for room
    size_t to_settle = 0;  // of the frames there: how many are to be done with
  };
  Way& way_of(const engine::ForwardFrame& frame);

  EnginePort& engine_;
  std::function<void()> arrived_;
  FrameInbox inbox_;
  std::vector<Way> ways_;                    // to the devices, and behind them to the connections
  std::optional<engine::Instant> settling_;  // the deadline for which has_settled() said no
};

}  // namespace rocemu::daemon
