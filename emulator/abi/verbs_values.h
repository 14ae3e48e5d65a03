// Enumerations that client and daemon exchange, with the values of <infiniband/verbs.h>, and their
// names without libibverbs' prefix. The engine must not depend on libibverbs; the provider asserts
// that the values agree (abi_values.cc). send_opcodes.h has the opcodes of work requests.
#pragma once

#include <cstdint>

#include "emulator/abi/named_enum.h"

namespace rocemu::abi {

/// ibv_qp_type, IBV_QPT_...
#define ROCEMU_QP_TYPES(V) \
  V(kRc, RC, 2)            \
  V(kUc, UC, 3)            \
  V(kUd, UD, 4)            \
  V(kXrcSend, XRC_SEND, 9) \
  V(kXrcRecv, XRC_RECV, 10)
ROCEMU_NAMED_ENUM(QpType, ROCEMU_QP_TYPES);

/// ibv_qp_state, IBV_QPS_...
#define ROCEMU_QP_STATES(V) \
  V(kReset, RESET, 0)       \
  V(kInit, INIT, 1)         \
  V(kRtr, RTR, 2)           \
  V(kRts, RTS, 3)           \
  V(kSqd, SQD, 4)           \
  V(kSqe, SQE, 5)           \
  V(kErr, ERR, 6)
ROCEMU_NAMED_ENUM(QpState, ROCEMU_QP_STATES);

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

/// Bits of ibv_send_flags.
enum SendFlags : uint32_t {
  kSendFence = 1u << 0,
  kSendSignaled = 1u << 1,
  kSendSolicited = 1u << 2,
  kSendInline = 1u << 3,
  kSendIpCsum = 1u << 4,
};

/// ibv_wc_status, IBV_WC_...
#define ROCEMU_WC_STATUSES(V)                \
  V(kSuccess, SUCCESS, 0)                    \
  V(kLocLenErr, LOC_LEN_ERR, 1)              \
  V(kLocQpOpErr, LOC_QP_OP_ERR, 2)           \
  V(kLocEecOpErr, LOC_EEC_OP_ERR, 3)         \
  V(kLocProtErr, LOC_PROT_ERR, 4)            \
  V(kWrFlushErr, WR_FLUSH_ERR, 5)            \
  V(kMwBindErr, MW_BIND_ERR, 6)              \
  V(kBadRespErr, BAD_RESP_ERR, 7)            \
  V(kLocAccessErr, LOC_ACCESS_ERR, 8)        \
  V(kRemInvReqErr, REM_INV_REQ_ERR, 9)       \
  V(kRemAccessErr, REM_ACCESS_ERR, 10)       \
  V(kRemOpErr, REM_OP_ERR, 11)               \
  V(kRetryExcErr, RETRY_EXC_ERR, 12)         \
  V(kRnrRetryExcErr, RNR_RETRY_EXC_ERR, 13)  \
  V(kLocRddViolErr, LOC_RDD_VIOL_ERR, 14)    \
  V(kRemInvRdReqErr, REM_INV_RD_REQ_ERR, 15) \
  V(kRemAbortErr, REM_ABORT_ERR, 16)         \
  V(kInvEecnErr, INV_EECN_ERR, 17)           \
  V(kInvEecStateErr, INV_EEC_STATE_ERR, 18)  \
  V(kFatalErr, FATAL_ERR, 19)                \
  V(kRespTimeoutErr, RESP_TIMEOUT_ERR, 20)   \
  V(kGeneralErr, GENERAL_ERR, 21)            \
  V(kTmErr, TM_ERR, 22)                      \
  V(kTmRndvIncomplete, TM_RNDV_INCOMPLETE, 23)
ROCEMU_NAMED_ENUM(WcStatus, ROCEMU_WC_STATUSES);

/// Bits of ibv_wc_flags.
enum WcFlags : uint32_t { kWcGrh = 1u << 0, kWcWithImm = 1u << 1, kWcWithInv = 1u << 3 };

/// The values of ibv_event_type (IBV_EVENT_...) that the headers of every rdma-core since 36 have.
#define ROCEMU_OLDER_EVENT_TYPES(V)             \
  V(kCqErr, CQ_ERR, 0)                          \
  V(kQpFatal, QP_FATAL, 1)                      \
  V(kQpReqErr, QP_REQ_ERR, 2)                   \
  V(kQpAccessErr, QP_ACCESS_ERR, 3)             \
  V(kCommEst, COMM_EST, 4)                      \
  V(kSqDrained, SQ_DRAINED, 5)                  \
  V(kPathMig, PATH_MIG, 6)                      \
  V(kPathMigErr, PATH_MIG_ERR, 7)               \
  V(kDeviceFatal, DEVICE_FATAL, 8)              \
  V(kPortActive, PORT_ACTIVE, 9)                \
  V(kPortErr, PORT_ERR, 10)                     \
  V(kLidChange, LID_CHANGE, 11)                 \
  V(kPkeyChange, PKEY_CHANGE, 12)               \
  V(kSmChange, SM_CHANGE, 13)                   \
  V(kSrqErr, SRQ_ERR, 14)                       \
  V(kSrqLimitReached, SRQ_LIMIT_REACHED, 15)    \
  V(kQpLastWqeReached, QP_LAST_WQE_REACHED, 16) \
  V(kClientReregister, CLIENT_REREGISTER, 17)   \
  V(kGidChange, GID_CHANGE, 18)                 \
  V(kWqFatal, WQ_FATAL, 19)
#define ROCEMU_EVENT_TYPES(V) \
  ROCEMU_OLDER_EVENT_TYPES(V) \
  V(kDeviceSpeedChange, DEVICE_SPEED_CHANGE, 20)
ROCEMU_NAMED_ENUM(EventType, ROCEMU_EVENT_TYPES);

/// The values of ibv_mtu. Code 1 is 256 bytes, each further code doubles the size, and code 5 is
/// 4096 bytes.
enum class Mtu : uint32_t { k256 = 1, k512, k1024, k2048, k4096 };

constexpr uint32_t mtu_bytes(Mtu mtu) {
  return 128u << static_cast<uint32_t>(mtu);
}

/// ibv_port_state, IBV_PORT_...
#define ROCEMU_PORT_STATES(V) \
  V(kNop, NOP, 0)             \
  V(kDown, DOWN, 1)           \
  V(kInit, INIT, 2)           \
  V(kArmed, ARMED, 3)         \
  V(kActive, ACTIVE, 4)
ROCEMU_NAMED_ENUM(PortState, ROCEMU_PORT_STATES);

}  // namespace rocemu::abi
