// Runs a program on two engines, and in parallel on a model that knows the effects of each
// operation.
//
// The model is simple because no two operations of a program access the same bytes, except
// operations of one connection whose order the specification defines. Over a reliable connection,
// every message arrives once, and an error ends the connection. For UC and UD, the model follows
// the frames that the network delivers: a message is received once for each time that all its
// packets arrived consecutively while a receive was posted for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/property/network.h"
#include "tests/property/program.h"
#include "tests/property/sides.h"

namespace rocemu::property {

class World {
 public:
  explicit World(const Program& program);

  /// Returns a description of the first error, or "" if everything agrees with the model.
  std::string run();

  uint64_t completions() const { return completions_; }
  const Network& network() const { return network_; }

 private:
  // Functions in operations.cc: execute an operation of an application.
  void execute(const Op& op);
  void post_send(const Op& op);
  /// Determines the effect of the act, for the engine and for the model. Returns false if the act
  /// has no effect at this time.
  bool prepare(const Op& op, Message& message, test::SendWr& wr);
  bool prepare_payload(const Op& op, Message& message, test::SendWr& wr);
  bool prepare_query(const Op& op, Message& message, test::SendWr& wr);
  bool prepare_window(const Op& op, Message& message, test::SendWr& wr);
  std::vector<abi::Sge> pieces(const test::Mr& mr, uint64_t address, uint32_t size, uint32_t count);
  void post_receive(uint32_t side, uint32_t connection, uint32_t length);
  void arm_limit(Side& side, Half& half, uint32_t limit);
  void resume(uint32_t side, uint32_t connection);
  void post_missing_receives();

  // Functions in world.cc: time and the network.
  void advance_to(engine::Instant time);
  void deliver(const Network::Arrival& arrival);
  void collect(uint32_t side);

  // Functions in frames.cc: the effects of UC and UD frames.
  void on_sent(uint32_t side, std::span<const uint8_t> frame);
  void on_arrival(uint32_t side, std::span<const uint8_t> frame);
  void on_connection_packet(Side& side, Half& half, uint32_t psn);
  void on_datagram(Side& side, Half& half, const Message& message, std::span<const uint8_t> frame);

  // Functions in checks.cc: check the results of the engines.
  void on_completion(uint32_t side, const abi::Cqe& cqe);
  void on_send_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe);
  void on_receive_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe);
  void on_message(uint32_t side, uint32_t connection, const Receive& receive, const abi::Cqe& cqe);
  void on_event(uint32_t side, const engine::AsyncEvent& event);
  void on_srq_limit(ReceiveQueue& queue);
  void on_success(uint32_t side, uint32_t connection, const Message& message);
  void on_failure(uint32_t side, uint32_t connection, const Message& message);
  void fail_qp(Half& half, bool sender);
  void check_end();
  void check_end_of(uint32_t side, uint32_t connection);

  void fail(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  const Program& program_;
  Network network_;
  Sides sides_;
  engine::Instant now_{};
  uint64_t completions_ = 0;
  std::string wrong_;
};

}  // namespace rocemu::property
