// The numbers that the daemon uses for verbs' enumerations are those of <infiniband/verbs.h>, so
// that values pass through the provider as they are.
#include "emulator/abi/verbs_values.h"

#include <infiniband/verbs.h>

namespace rocemu::abi {
namespace {

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<uint32_t>(ours) == static_cast<uint32_t>(theirs);
}

static_assert(same(QpType::kRc, IBV_QPT_RC));
static_assert(same(QpType::kUc, IBV_QPT_UC));
static_assert(same(QpType::kUd, IBV_QPT_UD));
static_assert(same(QpType::kXrcSend, IBV_QPT_XRC_SEND));
static_assert(same(QpType::kXrcRecv, IBV_QPT_XRC_RECV));

static_assert(same(QpState::kReset, IBV_QPS_RESET));
static_assert(same(QpState::kInit, IBV_QPS_INIT));
static_assert(same(QpState::kRtr, IBV_QPS_RTR));
static_assert(same(QpState::kRts, IBV_QPS_RTS));
static_assert(same(QpState::kSqd, IBV_QPS_SQD));
static_assert(same(QpState::kSqe, IBV_QPS_SQE));
static_assert(same(QpState::kErr, IBV_QPS_ERR));

static_assert(same(kAttrState, IBV_QP_STATE));
static_assert(same(kAttrCurState, IBV_QP_CUR_STATE));
static_assert(same(kAttrEnSqdAsyncNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY));
static_assert(same(kAttrAccessFlags, IBV_QP_ACCESS_FLAGS));
static_assert(same(kAttrPkeyIndex, IBV_QP_PKEY_INDEX));
static_assert(same(kAttrPort, IBV_QP_PORT));
static_assert(same(kAttrQkey, IBV_QP_QKEY));
static_assert(same(kAttrAv, IBV_QP_AV));
static_assert(same(kAttrPathMtu, IBV_QP_PATH_MTU));
static_assert(same(kAttrTimeout, IBV_QP_TIMEOUT));
static_assert(same(kAttrRetryCnt, IBV_QP_RETRY_CNT));
static_assert(same(kAttrRnrRetry, IBV_QP_RNR_RETRY));
static_assert(same(kAttrRqPsn, IBV_QP_RQ_PSN));
static_assert(same(kAttrMaxQpRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC));
static_assert(same(kAttrAltPath, IBV_QP_ALT_PATH));
static_assert(same(kAttrMinRnrTimer, IBV_QP_MIN_RNR_TIMER));
static_assert(same(kAttrSqPsn, IBV_QP_SQ_PSN));
static_assert(same(kAttrMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC));
static_assert(same(kAttrPathMigState, IBV_QP_PATH_MIG_STATE));
static_assert(same(kAttrCap, IBV_QP_CAP));
static_assert(same(kAttrDestQpn, IBV_QP_DEST_QPN));
static_assert(same(kAttrRateLimit, IBV_QP_RATE_LIMIT));

static_assert(same(kAccessLocalWrite, IBV_ACCESS_LOCAL_WRITE));
static_assert(same(kAccessRemoteWrite, IBV_ACCESS_REMOTE_WRITE));
static_assert(same(kAccessRemoteRead, IBV_ACCESS_REMOTE_READ));
static_assert(same(kAccessRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC));
static_assert(same(kAccessMwBind, IBV_ACCESS_MW_BIND));
static_assert(same(kAccessZeroBased, IBV_ACCESS_ZERO_BASED));
static_assert(same(kAccessOnDemand, IBV_ACCESS_ON_DEMAND));
static_assert(same(kAccessHugetlb, IBV_ACCESS_HUGETLB));
static_assert(same(kAccessRelaxedOrdering, IBV_ACCESS_RELAXED_ORDERING));
// kAccessFlushGlobal and kAccessFlushPersistent are not in the header of rdma-core 44.

static_assert(same(WrOpcode::kRdmaWrite, IBV_WR_RDMA_WRITE));
static_assert(same(WrOpcode::kRdmaWriteWithImm, IBV_WR_RDMA_WRITE_WITH_IMM));
static_assert(same(WrOpcode::kSend, IBV_WR_SEND));
static_assert(same(WrOpcode::kSendWithImm, IBV_WR_SEND_WITH_IMM));
static_assert(same(WrOpcode::kRdmaRead, IBV_WR_RDMA_READ));
static_assert(same(WrOpcode::kAtomicCmpAndSwp, IBV_WR_ATOMIC_CMP_AND_SWP));
static_assert(same(WrOpcode::kAtomicFetchAndAdd, IBV_WR_ATOMIC_FETCH_AND_ADD));
static_assert(same(WrOpcode::kLocalInv, IBV_WR_LOCAL_INV));
static_assert(same(WrOpcode::kBindMw, IBV_WR_BIND_MW));
static_assert(same(WrOpcode::kSendWithInv, IBV_WR_SEND_WITH_INV));
static_assert(same(WrOpcode::kTso, IBV_WR_TSO));
static_assert(same(WrOpcode::kDriver1, IBV_WR_DRIVER1));
static_assert(same(WrOpcode::kAtomicWrite, IBV_WR_ATOMIC_WRITE));

static_assert(same(kSendFence, IBV_SEND_FENCE));
static_assert(same(kSendSignaled, IBV_SEND_SIGNALED));
static_assert(same(kSendSolicited, IBV_SEND_SOLICITED));
static_assert(same(kSendInline, IBV_SEND_INLINE));
static_assert(same(kSendIpCsum, IBV_SEND_IP_CSUM));

static_assert(same(WcStatus::kSuccess, IBV_WC_SUCCESS));
static_assert(same(WcStatus::kLocLenErr, IBV_WC_LOC_LEN_ERR));
static_assert(same(WcStatus::kLocQpOpErr, IBV_WC_LOC_QP_OP_ERR));
static_assert(same(WcStatus::kLocEecOpErr, IBV_WC_LOC_EEC_OP_ERR));
static_assert(same(WcStatus::kLocProtErr, IBV_WC_LOC_PROT_ERR));
static_assert(same(WcStatus::kWrFlushErr, IBV_WC_WR_FLUSH_ERR));
static_assert(same(WcStatus::kMwBindErr, IBV_WC_MW_BIND_ERR));
static_assert(same(WcStatus::kBadRespErr, IBV_WC_BAD_RESP_ERR));
static_assert(same(WcStatus::kLocAccessErr, IBV_WC_LOC_ACCESS_ERR));
static_assert(same(WcStatus::kRemInvReqErr, IBV_WC_REM_INV_REQ_ERR));
static_assert(same(WcStatus::kRemAccessErr, IBV_WC_REM_ACCESS_ERR));
static_assert(same(WcStatus::kRemOpErr, IBV_WC_REM_OP_ERR));
static_assert(same(WcStatus::kRetryExcErr, IBV_WC_RETRY_EXC_ERR));
static_assert(same(WcStatus::kRnrRetryExcErr, IBV_WC_RNR_RETRY_EXC_ERR));
static_assert(same(WcStatus::kLocRddViolErr, IBV_WC_LOC_RDD_VIOL_ERR));
static_assert(same(WcStatus::kRemInvRdReqErr, IBV_WC_REM_INV_RD_REQ_ERR));
static_assert(same(WcStatus::kRemAbortErr, IBV_WC_REM_ABORT_ERR));
static_assert(same(WcStatus::kInvEecnErr, IBV_WC_INV_EECN_ERR));
static_assert(same(WcStatus::kInvEecStateErr, IBV_WC_INV_EEC_STATE_ERR));
static_assert(same(WcStatus::kFatalErr, IBV_WC_FATAL_ERR));
static_assert(same(WcStatus::kRespTimeoutErr, IBV_WC_RESP_TIMEOUT_ERR));
static_assert(same(WcStatus::kGeneralErr, IBV_WC_GENERAL_ERR));
static_assert(same(WcStatus::kTmErr, IBV_WC_TM_ERR));
static_assert(same(WcStatus::kTmRndvIncomplete, IBV_WC_TM_RNDV_INCOMPLETE));

static_assert(same(WcOpcode::kSend, IBV_WC_SEND));
static_assert(same(WcOpcode::kRdmaWrite, IBV_WC_RDMA_WRITE));
static_assert(same(WcOpcode::kRdmaRead, IBV_WC_RDMA_READ));
static_assert(same(WcOpcode::kCompSwap, IBV_WC_COMP_SWAP));
static_assert(same(WcOpcode::kFetchAdd, IBV_WC_FETCH_ADD));
static_assert(same(WcOpcode::kBindMw, IBV_WC_BIND_MW));
static_assert(same(WcOpcode::kLocalInv, IBV_WC_LOCAL_INV));
static_assert(same(WcOpcode::kAtomicWrite, IBV_WC_ATOMIC_WRITE));
static_assert(same(WcOpcode::kRecv, IBV_WC_RECV));
static_assert(same(WcOpcode::kRecvRdmaWithImm, IBV_WC_RECV_RDMA_WITH_IMM));

static_assert(same(kWcGrh, IBV_WC_GRH));
static_assert(same(kWcWithImm, IBV_WC_WITH_IMM));
static_assert(same(kWcWithInv, IBV_WC_WITH_INV));

static_assert(same(EventType::kCqErr, IBV_EVENT_CQ_ERR));
static_assert(same(EventType::kQpFatal, IBV_EVENT_QP_FATAL));
static_assert(same(EventType::kQpReqErr, IBV_EVENT_QP_REQ_ERR));
static_assert(same(EventType::kQpAccessErr, IBV_EVENT_QP_ACCESS_ERR));
static_assert(same(EventType::kCommEst, IBV_EVENT_COMM_EST));
static_assert(same(EventType::kSqDrained, IBV_EVENT_SQ_DRAINED));
static_assert(same(EventType::kPathMig, IBV_EVENT_PATH_MIG));
static_assert(same(EventType::kPathMigErr, IBV_EVENT_PATH_MIG_ERR));
static_assert(same(EventType::kDeviceFatal, IBV_EVENT_DEVICE_FATAL));
static_assert(same(EventType::kPortActive, IBV_EVENT_PORT_ACTIVE));
static_assert(same(EventType::kPortErr, IBV_EVENT_PORT_ERR));
static_assert(same(EventType::kLidChange, IBV_EVENT_LID_CHANGE));
static_assert(same(EventType::kPkeyChange, IBV_EVENT_PKEY_CHANGE));
static_assert(same(EventType::kSmChange, IBV_EVENT_SM_CHANGE));
static_assert(same(EventType::kSrqErr, IBV_EVENT_SRQ_ERR));
static_assert(same(EventType::kSrqLimitReached, IBV_EVENT_SRQ_LIMIT_REACHED));
static_assert(same(EventType::kQpLastWqeReached, IBV_EVENT_QP_LAST_WQE_REACHED));
static_assert(same(EventType::kClientReregister, IBV_EVENT_CLIENT_REREGISTER));
static_assert(same(EventType::kGidChange, IBV_EVENT_GID_CHANGE));
static_assert(same(EventType::kWqFatal, IBV_EVENT_WQ_FATAL));

static_assert(same(Mtu::k256, IBV_MTU_256));
static_assert(same(Mtu::k512, IBV_MTU_512));
static_assert(same(Mtu::k1024, IBV_MTU_1024));
static_assert(same(Mtu::k2048, IBV_MTU_2048));
static_assert(same(Mtu::k4096, IBV_MTU_4096));

static_assert(same(PortState::kNop, IBV_PORT_NOP));
static_assert(same(PortState::kDown, IBV_PORT_DOWN));
static_assert(same(PortState::kInit, IBV_PORT_INIT));
static_assert(same(PortState::kArmed, IBV_PORT_ARMED));
static_assert(same(PortState::kActive, IBV_PORT_ACTIVE));

}  // namespace
}  // namespace rocemu::abi
