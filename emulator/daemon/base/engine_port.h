// The interface of the engine to the rest of the daemon: it takes inputs, and when a call returns,
// the resulting outputs have been applied. Tests implement it by a recorder.
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
  /// Sets the process of a client or event channel that was created just now.
  virtual void name_process(const engine::Owner&, pid_t) {}
  /// Returns the NIC that the device emulates; null for none.
  virtual const engine::DeviceProfile* profile(engine::DeviceIndex) const { return nullptr; }
  /// The maximum number of WQEs in a PostSend
  virtual size_t most_wqes() const { return 1; }
  /// The maximum number of WQEs in a PostRecv or PostSrqRecv
  virtual size_t most_receives() const { return most_wqes(); }

  /// While an object of this class exists, outputs may be delayed until its destruction, and then
  /// applied together for many inputs. Only submit() may be called in this time.
  class Batch {
   public:
    explicit Batch(EnginePort& engine) : engine_(engine) { engine_.begin_batch(); }
    ~Batch() { engine_.end_batch(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    EnginePort& engine_;
  };

  /// Executes a control request and returns its reply; the completions and events that it causes
  /// have been delivered.
  virtual abi::Reply command(engine::ClientId client, const abi::Request& request) = 0;

  /// Executes a command of librdmacm and returns its reply; the events that it causes have been
  /// delivered.
  virtual engine::CmReply cm_command(const engine::CmCommand& command) = 0;

 private:
  virtual void begin_batch() {}
  virtual void end_batch() {}
};

}  // namespace rocemu::daemon
