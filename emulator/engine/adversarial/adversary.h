// The adversary decides, for `--adversarial`, when bytes reach memory, when a message is read, and
// when completions and events arrive. The engine has an adversary only if a class is enabled. All
// its choices are derived from the seed and the inputs.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/abi/rings.h"
#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/engine/adversarial/choices.h"
#include "emulator/engine/adversarial/late_read.h"
#include "emulator/engine/adversarial/order.h"
#include "emulator/engine/adversarial/placed_memory.h"
#include "emulator/engine/adversarial/torn_read.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/config.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/objects/queue_pair.h"
#include "emulator/engine/objects/sge_list.h"
#include "emulator/engine/step.h"
#include "wire/opcode.h"

namespace rocemu::engine::adversarial {

class Adversary final : public DeliveryHold {
 public:
  /// Returns the adversary, or nothing if the configuration enables no class. All arguments must
  /// outlive the adversary.
  static std::unique_ptr<Adversary> make(const FabricConfig& config, HostMemory& memory,
                                         Objects& objects, Step& step);
  Adversary(const FabricConfig& config, HostMemory& memory, Objects& objects, Step& step);

  /// Returns the memory through which all other parts of the engine access programs.
  HostMemory& memory() { return memory_; }

  /// Carries out the writes, completions and events that are due.
  void release_due(CompletionDelivery& completions, EventDelivery& events);
  /// Removes and returns the QPs whose wait is over. The caller must give each of them a quantum.
  std::vector<QpNumber> take_woken();
  std::optional<Instant> next_deadline() const;
  bool is_idle() const;

  /// Prepares for a packet. Must be called before the packet is processed; end_packet() must be
  /// called afterwards.
  void begin_packet(const QueuePair& qp, const wire::OpcodeInfo& info);
  void end_packet() { memory_.end(); }

  /// Delivers everything that is held back for the client. Called when the client calls a verb that
  /// may end the use of memory, QPs or CQs.
  void deliver_delayed(ClientId client, CompletionDelivery& completions, EventDelivery& events);
  /// Writes all pending bytes. Called before the connection manager notifies a program, because the
  /// bytes that a peer wrote before it disconnected must be visible then (IBTA vol 1, 12.9).
  void write_pending() { memory_.pending().place_all(); }
  /// Discards everything that is held back for a client that has ended.
  void drop(ClientId client);

  /// Returns whether packet number `packet` of the QP's WQE may be read from memory now. If not,
  /// the QP is woken at the time when it may.
  bool may_read(const QueuePair& qp, uint32_t wqe, uint32_t packet);
  /// Returns whether response packets may be sent with the data that was just read from memory. If
  /// not, the QP is woken later to read the data again.
  bool takes_response(const QueuePair& qp, const Response& response,
                      std::span<const std::span<uint8_t>> data);
  /// Returns whether it is too early to read the data of the response again.
  bool awaits_response(const QueuePair& qp, const Response& response) const;
  /// Returns the earliest time at which an acknowledgement that the QP makes now may be sent; the
  /// QP is woken at that time. Returns Instant{} if the class `order` is not enabled.
  Instant hold_acknowledgement(const QueuePair& qp);
  /// Decides whether to drop an acknowledgement that the following response covers.
  bool drops_acknowledgement() { return order_.drops_acknowledgement(); }
  /// Fills the buffer of a request with a pattern, because the request began and failed.
  void spoil(PdId pd, const SgeList& buffer, uint64_t length);
  /// Returns the value to write to bytes whose contents the specification leaves undefined.
  uint8_t undefined_byte() const;

  void shape(abi::Cqe& cqe) override;
  bool hold(const CompletionQueue& cq, const abi::Cqe& cqe, bool solicits) override;
  bool hold_event(const CompletionQueue& cq) override;
  bool hold_event(ClientId client, abi::EventType type, uint64_t element) override;

 private:
  void wake_at(QpNumber qp, Instant at);
  /// Returns a delay of the class `order`. `describe` returns the name of the delayed action.
  template <class Describe>
  Duration delay(Describe describe);
  void deliver(const std::vector<HeldCompletion>& held, CompletionDelivery& completions);
  void deliver(const std::vector<HeldEvent>& held, CompletionDelivery& completions,
               EventDelivery& events);

  const Classes classes_;
  Objects& objects_;
  Step& step_;
  AllChoices choices_;
  PlacedMemory memory_;
  LateRead late_read_;
  TornRead torn_read_;
  Order order_;
  Draw early_;  // decides whether a completion waits for bytes, or writes them
  std::set<std::pair<Instant, QpNumber>> wakes_;
};

}  // namespace rocemu::engine::adversarial
