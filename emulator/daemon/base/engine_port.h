// The engine as the rest of the daemon sees it: inputs go in, and what they want done has been done
// when the call returns. A test puts a recorder here.
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
  /// Says of which process a client or event channel is that came just now.
  virtual void name_process(const engine::Owner&, pid_t) {}
  /// Returns the NIC that the device stands for; null for none.
  virtual const engine::DeviceProfile* profile(engine::DeviceIndex) const { return nullptr; }
  /// How many WQEs a PostSend may have.
  virtual size_t most_wqes() const { return 1; }
  /// How many a PostRecv or PostSrqRecv may have.
  virtual size_t most_receives() const { return most_wqes(); }

  /// While one exists, what inputs want done may be done only when it ends, for many of them
  /// together. Only submit() may be called.
  class Batch {
   public:
    explicit Batch(EnginePort& engine) : engine_(engine) { engine_.begin_batch(); }
    ~Batch() { engine_.end_batch(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    EnginePort& engine_;
  };

  /// A control request and its answer; completions and events it causes are delivered already.
  virtual abi::Reply command(engine::ClientId client, const abi::Request& request) = 0;

  /// A command of librdmacm and its answer; events it causes are delivered already.
  virtual engine::CmReply cm_command(const engine::CmCommand& command) = 0;

 private:
  virtual void begin_batch() {}
  virtual void end_batch() {}
};

}  // namespace rocemu::daemon
