// The engine's own limits, which are also those of the profile `generic`; no profile has larger
// ones.
#pragma once

#include <cstdint>

namespace rocemu::engine {

// The maximum numbers of objects of one client. docs/limits.md shows that a client can create all
// of them, and their cost. The limits are no larger than a machine with 2 GiB of memory can
// support.
inline constexpr uint32_t kMaxQps = 131072;
inline constexpr uint32_t kMaxSrqs = 131072;
inline constexpr uint32_t kMaxCqs = 262144;
inline constexpr uint32_t kMaxPds = 131072;
inline constexpr uint32_t kMaxAhs = 524288;
inline constexpr uint32_t kMaxRegions = 524288;
inline constexpr uint32_t kMaxWindows = 524288;
inline constexpr uint32_t kMaxDms = 65536;
/// The maximum number of XRC domains of all clients together
inline constexpr uint32_t kMaxXrcds = 65536;
/// The highest number of an object. Numbers have 24 bits, like QPNs.
inline constexpr uint32_t kNumbers = (1u << 24) - 1;

inline constexpr uint32_t kMaxQpWr = 1048576;
inline constexpr uint32_t kMaxSrqWr = 1048576;
inline constexpr uint32_t kMaxSge = 32;
inline constexpr uint32_t kMaxInlineData = 1024;
inline constexpr uint32_t kMaxCqe = 4194304;
/// The maximum of ibv_moderate_cq::cq_count (completions) and of cq_period (microseconds)
inline constexpr uint32_t kMaxCqModeration = 65535;
/// The total bytes of device memory, and the logarithm of its maximum alignment, which is a page,
/// since device memory is a mapping of the client.
inline constexpr uint64_t kMaxDeviceMemory = 64 << 20;
inline constexpr uint32_t kMaxDeviceMemoryLogAlign = 12;
inline constexpr uint32_t kMaxMulticastGroups = 8192;
inline constexpr uint32_t kMaxQpsPerGroup = 56;
inline constexpr uint32_t kCompVectors = 2;
inline constexpr uint32_t kMaxRdAtomic = 128;
inline constexpr uint32_t kPkeyTableLength = 1;
/// The maximum number of entries in use in a port's GID table
inline constexpr uint32_t kGidTableLength = 16;
/// The maximum length of a message in bytes. IBTA vol 1, 9.2.8: the DMA length field and the verbs
/// allow 2^31.
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 31;

/// The first QPN that is assigned: 0 and 1 are the management QPs, and rxe also starts at 17.
inline constexpr uint32_t kFirstQpn = 17;

}  // namespace rocemu::engine
