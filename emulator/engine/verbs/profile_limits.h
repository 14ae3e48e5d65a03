// The requests that the device's profile forbids: verbs that the driver lacks, and requests that
// exceed limits below the engine's. The profile `generic` forbids nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::engine {

struct Refusal {
  int error = 0;
  std::string what;  // "asked for 256 bytes of inline data, the device has 101"
};

/// Returns why the profile refuses the request, or nullopt. `in_use` is the number of objects of
/// the requested kind that the device already has. For device memory it is a number of bytes, and
/// for attach_mcast the number of QPs in the group.
std::optional<Refusal> refusal_of(const DeviceProfile& profile, const abi::Request& request,
                                  uint64_t in_use);

/// Returns the request with the amount of inline data that the driver grants, which can be more or
/// less than was requested.
abi::Request as_granted(const DeviceProfile& profile, const abi::Request& request);

}  // namespace rocemu::engine
