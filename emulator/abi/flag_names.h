// The names of the flags in <infiniband/verbs.h>, without their prefix: "LOCAL_WRITE" for
// IBV_ACCESS_LOCAL_WRITE
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "emulator/abi/attributes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

struct FlagName {
  uint32_t bit;
  std::string_view name;
};

inline constexpr std::array kAccessNames = {
    FlagName{kAccessLocalWrite, "LOCAL_WRITE"},
    FlagName{kAccessRemoteWrite, "REMOTE_WRITE"},
    FlagName{kAccessRemoteRead, "REMOTE_READ"},
    FlagName{kAccessRemoteAtomic, "REMOTE_ATOMIC"},
    FlagName{kAccessMwBind, "MW_BIND"},
    FlagName{kAccessZeroBased, "ZERO_BASED"},
    FlagName{kAccessOnDemand, "ON_DEMAND"},
    FlagName{kAccessHugetlb, "HUGETLB"},
    FlagName{kAccessFlushGlobal, "FLUSH_GLOBAL"},
    FlagName{kAccessFlushPersistent, "FLUSH_PERSISTENT"},
    FlagName{kAccessRelaxedOrdering, "RELAXED_ORDERING"},
};
inline constexpr std::array kReregNames = {
    FlagName{kReregTranslation, "CHANGE_TRANSLATION"},
    FlagName{kReregPd, "CHANGE_PD"},
    FlagName{kReregAccess, "CHANGE_ACCESS"},
};
inline constexpr std::array kSendFlagNames = {
    FlagName{kSendFence, "FENCE"},         FlagName{kSendSignaled, "SIGNALED"},
    FlagName{kSendSolicited, "SOLICITED"}, FlagName{kSendInline, "INLINE"},
    FlagName{kSendIpCsum, "IP_CSUM"},
};

/// Returns the names of the set bits, such as "LOCAL_WRITE|REMOTE_READ", or "0" if no bit is set.
/// Bits without a name are combined into one decimal number.
inline std::string flags_text(uint64_t flags, std::span<const FlagName> names) {
  std::string text;
  for (const FlagName& one : names) {
    if ((flags & one.bit) == 0) continue;
    text += text.empty() ? "" : "|";
    text += one.name;
    flags &= ~uint64_t{one.bit};
  }
  if (flags == 0 && !text.empty()) return text;
  return text + (text.empty() ? "" : "|") + std::to_string(flags);
}

}  // namespace rocemu::abi
