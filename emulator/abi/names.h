// The words for the values that cross the client/daemon border: those of libibverbs and librdmacm,
// without their prefixes. What writes an event or reads a scenario looks here.
#pragma once

#include <iterator>
#include <span>
#include <string_view>

#include "emulator/abi/control.h"
#include "emulator/abi/ucma.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

/// Commands of the control protocol.
inline constexpr Named<Op> kOpNames[] = {
    {"open_device", Op::kHello},
    {"query_device", Op::kQueryDevice},
    {"query_port", Op::kQueryPort},
    {"create_comp_channel", Op::kCreateChannel},
    {"alloc_pd", Op::kAllocPd},
    {"dealloc_pd", Op::kDeallocPd},
    {"reg_mr", Op::kRegMr},
    {"dereg_mr", Op::kDeregMr},
    {"create_cq", Op::kCreateCq},
    {"destroy_cq", Op::kDestroyCq},
    {"create_qp", Op::kCreateQp},
    {"modify_qp", Op::kModifyQp},
    {"query_qp", Op::kQueryQp},
    {"destroy_qp", Op::kDestroyQp},
    {"create_ah", Op::kCreateAh},
    {"destroy_ah", Op::kDestroyAh},
    {"rereg_mr", Op::kReregMr},
    {"query_mr", Op::kQueryMr},
    {"advise_mr", Op::kAdviseMr},
    {"alloc_mw", Op::kAllocMw},
    {"dealloc_mw", Op::kDeallocMw},
    {"alloc_dm", Op::kAllocDm},
    {"free_dm", Op::kFreeDm},
    {"resize_cq", Op::kResizeCq},
    {"modify_cq", Op::kModifyCq},
    {"create_srq", Op::kCreateSrq},
    {"modify_srq", Op::kModifySrq},
    {"query_srq", Op::kQuerySrq},
    {"destroy_srq", Op::kDestroySrq},
    {"open_xrcd", Op::kOpenXrcd},
    {"close_xrcd", Op::kCloseXrcd},
    {"open_qp", Op::kOpenQp},
    {"attach_mcast", Op::kAttachMcast},
    {"detach_mcast", Op::kDetachMcast},
    {"query_pd", Op::kQueryPd},
    {"post_send", Op::kPostSend},
    {"bind_mw", Op::kBindMw},
    {"post_recv", Op::kPostRecv},
    {"post_srq_recv", Op::kPostSrqRecv},
    {"poll_cq", Op::kPollCq},
    {"req_notify_cq", Op::kReqNotifyCq},
    {"next_poll", Op::kNextPoll},
    {"get_srq_num", Op::kGetSrqNum},
    {"alloc_td", Op::kAllocTd},
    {"dealloc_td", Op::kDeallocTd},
    {"alloc_parent_domain", Op::kAllocParentDomain},
    {"dealloc_parent_domain", Op::kDeallocParentDomain},
    {"memcpy_to_dm", Op::kMemcpyToDm},
    {"memcpy_from_dm", Op::kMemcpyFromDm},
    {"query_rt_values", Op::kQueryRtValues},
};

/// ibv_qp_type, without IBV_QPT_.
inline constexpr Named<QpType> kQpTypeNames[] = {
    {"RC", QpType::kRc},
    {"UC", QpType::kUc},
    {"UD", QpType::kUd},
    {"XRC_SEND", QpType::kXrcSend},
    {"XRC_RECV", QpType::kXrcRecv},
};

/// ibv_qp_state, without IBV_QPS_ and as the man pages write them.
inline constexpr Named<QpState> kQpStateNames[] = {
    {"RESET", QpState::kReset}, {"INIT", QpState::kInit}, {"RTR", QpState::kRtr},
    {"RTS", QpState::kRts},     {"SQD", QpState::kSqd},   {"SQE", QpState::kSqe},
    {"ERR", QpState::kErr},
};

/// ibv_port_state, without IBV_PORT_.
inline constexpr Named<PortState> kPortStateNames[] = {
    {"NOP", PortState::kNop},     {"DOWN", PortState::kDown},     {"INIT", PortState::kInit},
    {"ARMED", PortState::kArmed}, {"ACTIVE", PortState::kActive},
};

/// ibv_wr_opcode, without IBV_WR_.
inline constexpr Named<WrOpcode> kWrOpcodeNames[] = {
    {"RDMA_WRITE", WrOpcode::kRdmaWrite},
    {"RDMA_WRITE_WITH_IMM", WrOpcode::kRdmaWriteWithImm},
    {"SEND", WrOpcode::kSend},
    {"SEND_WITH_IMM", WrOpcode::kSendWithImm},
    {"RDMA_READ", WrOpcode::kRdmaRead},
    {"ATOMIC_CMP_AND_SWP", WrOpcode::kAtomicCmpAndSwp},
    {"ATOMIC_FETCH_AND_ADD", WrOpcode::kAtomicFetchAndAdd},
    {"LOCAL_INV", WrOpcode::kLocalInv},
    {"BIND_MW", WrOpcode::kBindMw},
    {"SEND_WITH_INV", WrOpcode::kSendWithInv},
    {"TSO", WrOpcode::kTso},
    {"DRIVER1", WrOpcode::kDriver1},
    {"FLUSH", WrOpcode::kFlush},
    {"ATOMIC_WRITE", WrOpcode::kAtomicWrite},
};

/// ibv_wc_opcode, without IBV_WC_.
inline constexpr Named<WcOpcode> kWcOpcodeNames[] = {
    {"SEND", WcOpcode::kSend},
    {"RDMA_WRITE", WcOpcode::kRdmaWrite},
    {"RDMA_READ", WcOpcode::kRdmaRead},
    {"COMP_SWAP", WcOpcode::kCompSwap},
    {"FETCH_ADD", WcOpcode::kFetchAdd},
    {"BIND_MW", WcOpcode::kBindMw},
    {"LOCAL_INV", WcOpcode::kLocalInv},
    {"FLUSH", WcOpcode::kFlush},
    {"ATOMIC_WRITE", WcOpcode::kAtomicWrite},
    {"RECV", WcOpcode::kRecv},
    {"RECV_RDMA_WITH_IMM", WcOpcode::kRecvRdmaWithImm},
};

/// ibv_wc_status, without IBV_WC_.
inline constexpr Named<WcStatus> kWcStatusNames[] = {
    {"SUCCESS", WcStatus::kSuccess},
    {"LOC_LEN_ERR", WcStatus::kLocLenErr},
    {"LOC_QP_OP_ERR", WcStatus::kLocQpOpErr},
    {"LOC_EEC_OP_ERR", WcStatus::kLocEecOpErr},
    {"LOC_PROT_ERR", WcStatus::kLocProtErr},
    {"WR_FLUSH_ERR", WcStatus::kWrFlushErr},
    {"MW_BIND_ERR", WcStatus::kMwBindErr},
    {"BAD_RESP_ERR", WcStatus::kBadRespErr},
    {"LOC_ACCESS_ERR", WcStatus::kLocAccessErr},
    {"REM_INV_REQ_ERR", WcStatus::kRemInvReqErr},
    {"REM_ACCESS_ERR", WcStatus::kRemAccessErr},
    {"REM_OP_ERR", WcStatus::kRemOpErr},
    {"RETRY_EXC_ERR", WcStatus::kRetryExcErr},
    {"RNR_RETRY_EXC_ERR", WcStatus::kRnrRetryExcErr},
    {"LOC_RDD_VIOL_ERR", WcStatus::kLocRddViolErr},
    {"REM_INV_RD_REQ_ERR", WcStatus::kRemInvRdReqErr},
    {"REM_ABORT_ERR", WcStatus::kRemAbortErr},
    {"INV_EECN_ERR", WcStatus::kInvEecnErr},
    {"INV_EEC_STATE_ERR", WcStatus::kInvEecStateErr},
    {"FATAL_ERR", WcStatus::kFatalErr},
    {"RESP_TIMEOUT_ERR", WcStatus::kRespTimeoutErr},
    {"GENERAL_ERR", WcStatus::kGeneralErr},
    {"TM_ERR", WcStatus::kTmErr},
    {"TM_RNDV_INCOMPLETE", WcStatus::kTmRndvIncomplete},
};

/// ibv_event_type, without IBV_EVENT_.
inline constexpr Named<EventType> kEventTypeNames[] = {
    {"CQ_ERR", EventType::kCqErr},
    {"QP_FATAL", EventType::kQpFatal},
    {"QP_REQ_ERR", EventType::kQpReqErr},
    {"QP_ACCESS_ERR", EventType::kQpAccessErr},
    {"COMM_EST", EventType::kCommEst},
    {"SQ_DRAINED", EventType::kSqDrained},
    {"PATH_MIG", EventType::kPathMig},
    {"PATH_MIG_ERR", EventType::kPathMigErr},
    {"DEVICE_FATAL", EventType::kDeviceFatal},
    {"PORT_ACTIVE", EventType::kPortActive},
    {"PORT_ERR", EventType::kPortErr},
    {"LID_CHANGE", EventType::kLidChange},
    {"PKEY_CHANGE", EventType::kPkeyChange},
    {"SM_CHANGE", EventType::kSmChange},
    {"SRQ_ERR", EventType::kSrqErr},
    {"SRQ_LIMIT_REACHED", EventType::kSrqLimitReached},
    {"QP_LAST_WQE_REACHED", EventType::kQpLastWqeReached},
    {"CLIENT_REREGISTER", EventType::kClientReregister},
    {"GID_CHANGE", EventType::kGidChange},
    {"WQ_FATAL", EventType::kWqFatal},
};

/// Commands of rdma_cm, as the kernel names them.
inline constexpr Named<ucma::Command> kCmCommandNames[] = {
    {"create_id", ucma::Command::kCreateId},
    {"destroy_id", ucma::Command::kDestroyId},
    {"bind_ip", ucma::Command::kBindIp},
    {"resolve_ip", ucma::Command::kResolveIp},
    {"resolve_route", ucma::Command::kResolveRoute},
    {"query_route", ucma::Command::kQueryRoute},
    {"connect", ucma::Command::kConnect},
    {"listen", ucma::Command::kListen},
    {"accept", ucma::Command::kAccept},
    {"reject", ucma::Command::kReject},
    {"disconnect", ucma::Command::kDisconnect},
    {"init_qp_attr", ucma::Command::kInitQpAttr},
    {"get_event", ucma::Command::kGetEvent},
    {"get_option", ucma::Command::kGetOption},
    {"set_option", ucma::Command::kSetOption},
    {"notify", ucma::Command::kNotify},
    {"join_ip_mcast", ucma::Command::kJoinIpMcast},
    {"leave_mcast", ucma::Command::kLeaveMcast},
    {"migrate_id", ucma::Command::kMigrateId},
    {"query", ucma::Command::kQuery},
    {"bind", ucma::Command::kBind},
    {"resolve_addr", ucma::Command::kResolveAddr},
    {"join_mcast", ucma::Command::kJoinMcast},
    {"open_channel", ucma::Command::kOpenChannel},
};

/// rdma_cm_event_type, without RDMA_CM_EVENT_.
inline constexpr Named<ucma::EventType> kCmEventTypeNames[] = {
    {"ADDR_RESOLVED", ucma::EventType::kAddrResolved},
    {"ADDR_ERROR", ucma::EventType::kAddrError},
    {"ROUTE_RESOLVED", ucma::EventType::kRouteResolved},
    {"ROUTE_ERROR", ucma::EventType::kRouteError},
    {"CONNECT_REQUEST", ucma::EventType::kConnectRequest},
    {"CONNECT_RESPONSE", ucma::EventType::kConnectResponse},
    {"CONNECT_ERROR", ucma::EventType::kConnectError},
    {"UNREACHABLE", ucma::EventType::kUnreachable},
    {"REJECTED", ucma::EventType::kRejected},
    {"ESTABLISHED", ucma::EventType::kEstablished},
    {"DISCONNECTED", ucma::EventType::kDisconnected},
    {"DEVICE_REMOVAL", ucma::EventType::kDeviceRemoval},
    {"MULTICAST_JOIN", ucma::EventType::kMulticastJoin},
    {"MULTICAST_ERROR", ucma::EventType::kMulticastError},
    {"ADDR_CHANGE", ucma::EventType::kAddrChange},
    {"TIMEWAIT_EXIT", ucma::EventType::kTimewaitExit},
    {"GET_EVENT_FAILED", ucma::EventType::kGetEventFailed},
};

static_assert(std::size(kOpNames) == static_cast<size_t>(kLastOp));
static_assert(std::size(kCmCommandNames) == ucma::kCommands);

// The table of each type, for name_of().
constexpr std::span<const Named<Op>> names_of(Op) {
  return kOpNames;
}
constexpr std::span<const Named<QpType>> names_of(QpType) {
  return kQpTypeNames;
}
constexpr std::span<const Named<QpState>> names_of(QpState) {
  return kQpStateNames;
}
constexpr std::span<const Named<PortState>> names_of(PortState) {
  return kPortStateNames;
}
constexpr std::span<const Named<WrOpcode>> names_of(WrOpcode) {
  return kWrOpcodeNames;
}
constexpr std::span<const Named<WcOpcode>> names_of(WcOpcode) {
  return kWcOpcodeNames;
}
constexpr std::span<const Named<WcStatus>> names_of(WcStatus) {
  return kWcStatusNames;
}
constexpr std::span<const Named<EventType>> names_of(EventType) {
  return kEventTypeNames;
}
constexpr std::span<const Named<ucma::Command>> names_of(ucma::Command) {
  return kCmCommandNames;
}
constexpr std::span<const Named<ucma::EventType>> names_of(ucma::EventType) {
  return kCmEventTypeNames;
}

/// "unknown" for values that have no name.
template <class Value>
constexpr std::string_view name_of(Value value) {
  for (const auto& one : names_of(value)) {
    if (one.value == value) return one.name;
  }
  return "unknown";
}

}  // namespace rocemu::abi
