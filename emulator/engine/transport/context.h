// The environment of the transport's stages (requester, completer, responder, UC, UD)
#pragma once

#include "emulator/engine/adversarial/adversary.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/config.h"
#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/link/arrivals.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/link/network_crossing.h"
#include "emulator/engine/link/packet_run.h"
#include "emulator/engine/link/short_requests.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"
#include "emulator/engine/transport/qp_scheduler.h"
#include "emulator/engine/transport/transmitter.h"

namespace rocemu::engine {

class TransportContext {
 public:
  /// All arguments must outlive this object.
  TransportContext(const FabricConfig& config, Objects& objects, HostMemory& memory, Step& step,
                   QpScheduler& scheduler, Transmitter& transmitter,
                   faults::FaultInjector& injector, const Link& link, NetworkCrossing& crossing,
                   const Arrivals& arrivals, PacketRun& run, ShortRequests& short_requests,
                   adversarial::Adversary* adversary)
      : config_(config),
        objects_(objects),
        memory_(memory),
        step_(step),
        scheduler_(scheduler),
        transmitter_(transmitter),
        faults_(injector),
        link_(link),
        crossing_(crossing),
        arrivals_(arrivals),
        run_(run),
        short_requests_(short_requests),
        adversary_(adversary) {}

  Instant now() const { return step_.now(); }
  const FabricConfig& config() const { return config_; }
  Objects& objects() const { return objects_; }
  HostMemory& memory() const { return memory_; }
  /// Returns the scheduler of QPs, which keeps their quanta, their timers, and their waits for
  /// memory.
  QpScheduler& scheduler() const { return scheduler_; }
  /// Returns the transmitter, which sends frames.
  Transmitter& transmitter() const { return transmitter_; }
  faults::FaultInjector& faults() const { return faults_; }
  /// Returns the object that takes frames through the simulated network, if there is one.
  NetworkCrossing& crossing() const { return crossing_; }

  Counters& counters_of(const QueuePair& qp) const { return objects_.device_of(qp).counters; }
  Device& device_of(const QueuePair& qp) const { return objects_.device_of(qp); }
  /// Returns whether the QP's packets leave the fabric. The network outside loses some packets and
  /// delays others.
  bool is_remote(const QueuePair& qp) const {
    return !qp.path.inside && objects_.device_of(qp).config.outside;
  }

  /// Calls CompletionFaults::complete, which adds the completion to the CQ.
  bool complete(const QueuePair& qp, CqId cq, const abi::Cqe& cqe, bool solicits,
                bool wanted = true) const {
    return faults_.completions.complete(qp, cq, cqe, solicits, wanted);
  }
  /// Reports a program's mistake to the sanitizer.
  void note(const Misuse& misuse) const { step_.note(misuse); }
  /// Raises an async event for all clients that have a reference to the QP.
  void raise(const QueuePair& qp, abi::EventType type) const { faults_.events.raise(qp, type); }

  /// Returns whether an acknowledgement for `messages` messages must wait, because another packet
  /// follows immediately, either in the same burst from outside or inside the fabric.
  bool delays_acknowledgement(uint32_t messages) const {
    return messages < config_.ack_coalescing &&
           (!arrivals_.empty() || !short_requests_.empty() || link_.has_arrived(now())) &&
           !link_.paused();
  }
  /// Returns whether no frame is in flight between the devices of the fabric, and none is held.
  bool is_link_idle() const { return link_.empty() && !link_.paused(); }
  /// Returns whether requests have arrived that will be handled before any QP sends again.
  bool has_arrivals() const {
    return !short_requests_.empty() || (link_.has_arrived(now()) && !link_.paused());
  }
  bool is_link_paused() const { return link_.paused(); }
  ShortRequests& short_requests() const { return short_requests_; }
  /// Returns the run that begins with the present packet and continues with the later packets of
  /// the same message that have already arrived.
  PacketRun& run_at_hand() const { return run_; }
  /// Returns the adversary, or null unless a class of `--adversarial` is enabled.
  adversarial::Adversary* adversary() const { return adversary_; }

 private:
  const FabricConfig& config_;
  Objects& objects_;
  HostMemory& memory_;
  Step& step_;
  QpScheduler& scheduler_;
  Transmitter& transmitter_;
  faults::FaultInjector& faults_;
  const Link& link_;
  NetworkCrossing& crossing_;
  const Arrivals& arrivals_;
  PacketRun& run_;
  ShortRequests& short_requests_;
  adversarial::Adversary* adversary_;
};

}  // namespace rocemu::engine
