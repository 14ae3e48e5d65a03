// The requests that the device's profile forbids: verbs that the driver lacks, and limits below the
// engine's own. `generic` refuses nothing here.
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
/// the requested kind that the device has already; it is bytes for device memory, and members of
/// the group for attach_mcast.
std::optional<Refusal> refusal_of(const DeviceProfile& profile, const abi::Request& request,
                                  uint64_t in_use);

/// Returns the request as the driver executes it: with the inline data that it grants.
abi::Request as_granted(const DeviceProfile& profile, const abi::Request& request);

}  // namespace rocemu::engine
