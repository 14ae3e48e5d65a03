// Two connected clients. The clients of a Pair are on two devices of one fabric, whose frames move
// inside step(). The clients of a JoinedPair are on two engines, joined by a link that can lose,
// duplicate, reorder and corrupt frames on request.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"

namespace rocemu::test {

/// The kind of frames to which a fault applies.
enum class FrameKind { kAny, kRequest, kAck, kNak };
bool is_kind(FrameKind kind, std::span<const uint8_t> frame);

/// Returns the completions of one client among the outputs, in order.
std::vector<abi::Cqe> completions_of(const std::vector<Timed>& log, engine::ClientId client);

struct PairOptions {
  EndpointOptions left, right;
  bool same_device = false;
  bool without_grh = false;
  bool trace_frames = false;
  engine::Duration link_latency{0};
  // the network between the two devices
  std::shared_ptr<const engine::NetworkPlan> network = nullptr;
  abi::QpState state = abi::QpState::kRts;
  BenchObserver* observer = nullptr;
};

class Pair {
 public:
  explicit Pair(const PairOptions& options = {});

  /// Return the completions of one side that arrived since the last call.
  std::vector<abi::Cqe> take_left() { return take(left.client.id()); }
  std::vector<abi::Cqe> take_right() { return take(right.client.id()); }

  Bench bench;
  Endpoint left, right;

 private:
  std::vector<abi::Cqe> take(engine::ClientId client);
};

class JoinedPair {
 public:
  explicit JoinedPair(const EndpointOptions& left = {}, const EndpointOptions& right = {});

  // Apply a fault to the next frame of this kind from either side: the frame is lost, is
  // duplicated, waits until one more frame in its direction has passed, or gets a flipped bit.
  void drop_next(FrameKind kind) { faults_.push_back({Fault::kDrop, kind}); }
  void duplicate_next(FrameKind kind) { faults_.push_back({Fault::kDuplicate, kind}); }
  void delay_next(FrameKind kind) { faults_.push_back({Fault::kDelay, kind}); }
  void corrupt_next(FrameKind kind) { faults_.push_back({Fault::kCorrupt, kind}); }
  /// A function that returns for each frame the number of copies that arrive. It can be used
  /// together with the faults above.
  std::function<int(std::span<const uint8_t> frame)> copies;

  /// Moves frames until none is in flight.
  void settle();
  /// Moves frames while time advances, from deadline to deadline, until `time`.
  void run_until(engine::Duration time);

  /// Return the completions of one side since the last call, in order.
  std::vector<abi::Cqe> take_left() { return std::exchange(left_done_, {}); }
  std::vector<abi::Cqe> take_right() { return std::exchange(right_done_, {}); }

  Bench left_bench, right_bench;
  Endpoint left, right;
  uint64_t frames_carried = 0;

 private:
  enum class Fault { kDrop, kDuplicate, kDelay, kCorrupt };
  struct Pending {
    Fault fault;
    FrameKind kind;
  };
  using Bytes = std::vector<uint8_t>;

  bool move(Bench& from, Bench& to, std::vector<Bytes>& held, std::vector<abi::Cqe>& done);
  void deliver(Bench& to, const Bytes& frame);

  std::deque<Pending> faults_;
  std::vector<Bytes> held_left_, held_right_;  // delayed frames, by the side that sent them
  std::vector<abi::Cqe> left_done_, right_done_;
};

}  // namespace rocemu::test
