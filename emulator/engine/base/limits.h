// The engine's own limits. They are those of the profile `generic`; no profile has more room.
#pragma once

#include <cstdint>

namespace rocemu::engine {

// Objects of one client, each of which can have that many: docs/limits.md shows all of them made,
// and what that takes. They are no larger than what a machine with 2 GiB of memory can bear.
inline constexpr uint32_t kMaxQps = 131072;
inline constexpr uint32_t kMaxSrqs = 131072;
inline constexpr uint32_t kMaxCqs = 262144;
inline constexpr uint32_t kMaxPds = 131072;
inline constexpr uint32_t kMaxAhs = 524288;
inline constexpr uint32_t kMaxRegions = 524288;
inline constexpr uint32_t kMaxWindows = 524288;
inline constexpr uint32_t kMaxDms = 65536;
/// Of all clients.
inline constexpr uint32_t kMaxXrcds = 65536;
/// So many numbers there are for objects of one kind: 24 bits, as of QPNs.
inline constexpr uint32_t kNumbers = (1u << 24) - 1;

inline constexpr uint32_t kMaxQpWr = 1048576;
inline constexpr uint32_t kMaxSrqWr = 1048576;
inline constexpr uint32_t kMaxSge = 32;
inline constexpr uint32_t kMaxInlineData = 1024;
inline constexpr uint32_t kMaxCqe = 4194304;
/// Both of ibv_moderate_cq: completions, microseconds.
inline constexpr uint32_t kMaxCqModeration = 65535;
/// Bytes of device memory, all of it together, and its alignment at most: a page, since it is a
/// mapping of the client's.
inline constexpr uint64_t kMaxDeviceMemory = 64 << 20;
inline constexpr uint32_t kMaxDeviceMemoryLogAlign = 12;
inline constexpr uint32_t kMaxMulticastGroups = 8192;
inline constexpr uint32_t kMaxQpsPerGroup = 56;
inline constexpr uint32_t kCompVectors = 2;
inline constexpr uint32_t kMaxRdAtomic = 128;
inline constexpr uint32_t kPkeyTableLength = 1;
/// Entries of a port's GID table that can be in use.
inline constexpr uint32_t kGidTableLength = 16;
/// IBTA vol 1, 9.2.8: the DMA length field and the verbs allow 2^31.
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 31;

/// The first QPN given out: 0 and 1 are the management QPs, and rxe too starts at 17.
inline constexpr uint32_t kFirstQpn = 17;

}  // namespace rocemu::engine
