// The engine as the rest of the daemon sees it: inputs go in, and what they want done has been done
// when the call returns. A test puts a recorder here.
#pragma once

#include "emulator/abi/control.h"
#include "emulator/engine/events.h"

namespace rocemu::daemon {

class EnginePort {
 public:
  virtual ~EnginePort() = default;

  virtual void submit(const engine::Input& input) = 0;

  /// A control request and its answer; completions and events it causes are delivered already.
  virtual abi::Reply command(engine::ClientId client, const abi::Request& request) = 0;

  /// A command of librdmacm and its answer; events it causes are delivered already.
  virtual engine::CmReply cm_command(const engine::CmCommand& command) = 0;
};

}  // namespace rocemu::daemon
