// The hello, which is the first request of a client: its descriptors, and the daemon's reply with
// the locations of the shared memory.
#pragma once

#include <optional>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/client_queues.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

struct HelloFds {
  UniqueFd client_end;
  UniqueFd mem_file;  // may be empty
  UniqueFd imported;  // another session's client end, if requested
};

/// Assigns the descriptors of a hello to their purposes. Returns nothing if a required descriptor
/// is missing, there are too many, or the client's end is not a connection to the daemon. `own_end`
/// is the daemon's end of the connection.
std::optional<HelloFds> sort_hello_fds(std::vector<UniqueFd> fds, bool imports, int own_end);

/// Returns the reply to the hello of a client whose doorbell memory has been set.
abi::Reply welcome(const ClientQueues& queues, engine::DeviceIndex device,
                   const Arena::SegmentFile& segment, const Clock& clock, bool fills_undefined,
                   const abi::PostRules& posts);

}  // namespace rocemu::daemon
