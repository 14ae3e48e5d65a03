// The interface through which the rest of the daemon uses the engine. It takes inputs, and when a
// call returns, the resulting outputs have been delivered. Tests implement it with a recorder.
#pragma once

#include <sys/types.h>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"
#include "emulator/engine/events.h"

namespace rocemu::daemon {

class EnginePort {
 public:
  virtual ~EnginePort() = default;

  virtual void submit(const engine::Input& input) = 0;
  /// Sets the process of a client or event channel that has just been created.
  virtual void name_process(const engine::Owner&, pid_t) {}
  /// Returns the profile of the NIC that the device emulates; null if it has none.
  virtual const engine::DeviceProfile* profile(engine::DeviceIndex) const { return nullptr; }
  /// Returns the maximum number of WQEs in a PostSend.
  virtual size_t most_wqes() const { return 1; }
  /// Returns the maximum number of WQEs in a PostRecv or PostSrqRecv.
  virtual size_t most_receives() const { return most_wqes(); }

  /// Lets the engine delay outputs: while a Batch exists, the outputs of several inputs may be
  /// collected and delivered together. All have been delivered when the Batch is destroyed. Only
  /// submit() may be called while it exists.
  class Batch {
   public:
    explicit Batch(EnginePort& engine) : engine_(engine) { engine_.begin_batch(); }
    ~Batch() { engine_.end_batch(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    EnginePort& engine_;
  };

  /// Executes a control request and returns its reply. The resulting completions and events have
  /// been delivered by then.
  virtual abi::Reply command(engine::ClientId client, const abi::Request& request) = 0;

  /// Executes a command of librdmacm and returns its reply. The resulting events have been
  /// delivered by then.
  virtual engine::CmReply cm_command(const engine::CmCommand& command) = 0;

 private:
  virtual void begin_batch() {}
  virtual void end_batch() {}
};

}  // namespace rocemu::daemon
