// Finds the limits of a device that the attributes of a call exceeded
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::sanitizer {

enum class Limit : uint8_t { kQpWr, kSge, kInline, kCqe, kSrqWr, kSrqSge, kReads, kInitiatedReads };

struct Asked {
  std::string_view attribute;
  uint64_t value;
  Limit limit;
};

struct Exceeded {
  std::string_view attribute;
  uint64_t asked, allowed;
};

/// Queries the device, and returns the limits that `asked` exceeds. The caller must not hold the
/// program's lock.
std::vector<Exceeded> exceeded_limits(ibv_context* context, const std::vector<Asked>& asked);

/// Returns the device's name, followed by " (profile mlx5-cx6dx)" if the device emulates another
/// NIC.
std::string name_with_profile(const ibv_context* context);

}  // namespace rocemu::sanitizer
