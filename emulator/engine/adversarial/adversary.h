// The adversary decides, for `--adversarial`, when bytes reach memory, when a message is read, and
// when completions and events come. The engine has an adversary only if a class is on. The seed and
// the inputs decide everything that it does.
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
  /// Returns nothing if the configuration has no class. All of them outlive the adversary.
  static std::unique_ptr<Adversary> make(const FabricConfig& config, HostMemory& memory,
                                         Objects& objects, Step& step);
  Adversary(const FabricConfig& config, HostMemory& memory, Objects& objects, Step& step);

  /// The memory that all other parts of the engine use.
  HostMemory& memory() { return memory_; }

  /// Writes, completes and raises what is due.
  void release_due(CompletionDelivery& completions, EventDelivery& events);
  /// Takes the QPs whose wait is over: each has a turn.
  std::vector<QpNumber> take_woken();
  std::optional<Instant> next_deadline() const;
  bool is_idle() const;

  /// A packet is about to be processed; `end_packet` follows.
  void begin_packet(const QueuePair& qp, const wire::OpcodeInfo& info);
  void end_packet() { memory_.end(); }

  /// The client calls a verb that may end the use of memory, QPs or CQs: nothing of it is held back
  /// any more.
  void settle(ClientId client, CompletionDelivery& completions, EventDelivery& events);
  /// The connection manager says something to a program: IBTA vol 1, 12.9, what a peer wrote before
  /// it disconnected is there.
  void settle_memory() { memory_.pending().place_all(); }
  /// The client is gone.
  void drop(ClientId client);

  /// Returns whether a packet of the QP's WQE may be read from memory now. If not, the QP is woken
  /// when it may.
  bool may_read(const QueuePair& qp, uint32_t wqe, uint32_t packet);
  /// Returns whether the data of response packets may be sent that was read just now; else the QP
  /// is woken to read it again.
  bool takes_response(const QueuePair& qp, const Response& response,
                      std::span<const std::span<uint8_t>> data);
  /// Returns whether it is too early to read that data again.
  bool awaits_response(const QueuePair& qp, const Response& response) const;
  /// Returns when an acknowledgement that the QP makes now may be sent at the earliest, at which
  /// time the QP is woken; Instant{} if the class `order` is off.
  Instant hold_acknowledgement(const QueuePair& qp);
  /// Returns whether the response behind an acknowledgement is to stand for it.
  bool drops_acknowledgement() { return order_.drops_acknowledgement(); }
  /// Fills the buffer of a request that began and failed.
  void spoil(PdId pd, const SgeList& buffer, uint64_t length);
  /// Returns what bytes have that nothing defines, if they are written at all.
  uint8_t undefined_byte() const;

  void shape(abi::Cqe& cqe) override;
  bool hold(const CompletionQueue& cq, const abi::Cqe& cqe, bool solicits) override;
  bool hold_event(const CompletionQueue& cq) override;
  bool hold_event(ClientId client, abi::EventType type, uint64_t element) override;

 private:
  void wake_at(QpNumber qp, Instant at);
  /// Returns a delay of the class `order` for what `describe` names.
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
  Draw early_;  // whether a completion waits for bytes, or brings them
  std::set<std::pair<Instant, QpNumber>> wakes_;
};

}  // namespace rocemu::engine::adversarial
