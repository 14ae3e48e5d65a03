// Enumerations that cross the client/daemon border, with the numbers of <infiniband/verbs.h>.
// The engine must not depend on libibverbs; the provider asserts that the numbers agree.
#pragma once

#include <cstdint>

namespace rocemu::abi {

enum class QpType : uint32_t { kRc = 2, kUc = 3, kUd = 4, kXrcSend = 9, kXrcRecv = 10 };

enum class QpState : uint32_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

/// Bits of the attribute mask of ibv_modify_qp(3).
enum QpAttrMask : uint32_t {
  kAttrState = 1u << 0,
  kAttrCurState = 1u << 1,
  kAttrEnSqdAsyncNotify = 1u << 2,
  kAttrAccessFlags = 1u << 3,
  kAttrPkeyIndex = 1u << 4,
  kAttrPort = 1u << 5,
  kAttrQkey = 1u << 6,
  kAttrAv = 1u << 7,
  kAttrPathMtu = 1u << 8,
  kAttrTimeout = 1u << 9,
  kAttrRetryCnt = 1u << 10,
  kAttrRnrRetry = 1u << 11,
  kAttrRqPsn = 1u << 12,
  kAttrMaxQpRdAtomic = 1u << 13,
  kAttrAltPath = 1u << 14,
  kAttrMinRnrTimer = 1u << 15,
  kAttrSqPsn = 1u << 16,
  kAttrMaxDestRdAtomic = 1u << 17,
  kAttrPathMigState = 1u << 18,
  kAttrCap = 1u << 19,
  kAttrDestQpn = 1u << 20,
  kAttrRateLimit = 1u << 25,
};

/// Bits of ibv_access_flags.
enum AccessFlags : uint32_t {
  kAccessLocalWrite = 1u << 0,
  kAccessRemoteWrite = 1u << 1,
  kAccessRemoteRead = 1u << 2,
  kAccessRemoteAtomic = 1u << 3,
  kAccessMwBind = 1u << 4,
  kAccessZeroBased = 1u << 5,
  kAccessOnDemand = 1u << 6,
  kAccessHugetlb = 1u << 7,
  kAccessFlushGlobal = 1u << 8,
  kAccessFlushPersistent = 1u << 9,
  kAccessRelaxedOrdering = 1u << 20,
};

/// ibv_wr_opcode.
enum class WrOpcode : uint32_t {
  kRdmaWrite,
  kRdmaWriteWithImm,
  kSend,
  kSendWithImm,
  kRdmaRead,
  kAtomicCmpAndSwp,
  kAtomicFetchAndAdd,
  kLocalInv,
  kBindMw,
  kSendWithInv,
  kTso,
  kDriver1,
  kFlush = 14,
  kAtomicWrite = 15,
};

/// Bits of ibv_send_flags.
enum SendFlags : uint32_t {
  kSendFence = 1u << 0,
  kSendSignaled = 1u << 1,
  kSendSolicited = 1u << 2,
  kSendInline = 1u << 3,
  kSendIpCsum = 1u << 4,
};

/// ibv_wc_status.
enum class WcStatus : uint32_t {
  kSuccess,
  kLocLenErr,
  kLocQpOpErr,
  kLocEecOpErr,
  kLocProtErr,
  kWrFlushErr,
  kMwBindErr,
  kBadRespErr,
  kLocAccessErr,
  kRemInvReqErr,
  kRemAccessErr,
  kRemOpErr,
  kRetryExcErr,
  kRnrRetryExcErr,
  kLocRddViolErr,
  kRemInvRdReqErr,
  kRemAbortErr,
  kInvEecnErr,
  kInvEecStateErr,
  kFatalErr,
  kRespTimeoutErr,
  kGeneralErr,
  kTmErr,
  kTmRndvIncomplete,
};

/// ibv_wc_opcode.
enum class WcOpcode : uint32_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompSwap = 3,
  kFetchAdd = 4,
  kBindMw = 5,
  kLocalInv = 6,
  kFlush = 8,
  kAtomicWrite = 9,
  kRecv = 128,
  kRecvRdmaWithImm = 129,
};

/// Bits of ibv_wc_flags.
enum WcFlags : uint32_t { kWcGrh = 1u << 0, kWcWithImm = 1u << 1, kWcWithInv = 1u << 3 };

/// ibv_event_type.
enum class EventType : uint32_t {
  kCqErr,
  kQpFatal,
  kQpReqErr,
  kQpAccessErr,
  kCommEst,
  kSqDrained,
  kPathMig,
  kPathMigErr,
  kDeviceFatal,
  kPortActive,
  kPortErr,
  kLidChange,
  kPkeyChange,
  kSmChange,
  kSrqErr,
  kSrqLimitReached,
  kQpLastWqeReached,
  kClientReregister,
  kGidChange,
  kWqFatal,
};

/// ibv_mtu: code 1 is 256 bytes, each further code doubles, 5 is 4096.
enum class Mtu : uint32_t { k256 = 1, k512, k1024, k2048, k4096 };

constexpr uint32_t mtu_bytes(Mtu mtu) {
  return 128u << static_cast<uint32_t>(mtu);
}

enum class PortState : uint32_t { kNop, kDown, kInit, kArmed, kActive };

}  // namespace rocemu::abi
