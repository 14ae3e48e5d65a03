#include "emulator/journal/names.h"

#include <cstddef>

namespace rocemu::journal {
namespace {

using Name = std::string_view;

template <class Value, size_t kCount>
Name look_up(const Name (&names)[kCount], Value value) {
  const auto index = static_cast<size_t>(value);
  return index < kCount && !names[index].empty() ? names[index] : "unknown";
}

constexpr Name kOps[] = {"",
                         "open_device",
                         "query_device",
                         "query_port",
                         "create_comp_channel",
                         "alloc_pd",
                         "dealloc_pd",
                         "reg_mr",
                         "dereg_mr",
                         "create_cq",
                         "destroy_cq",
                         "create_qp",
                         "modify_qp",
                         "query_qp",
                         "destroy_qp",
                         "create_ah",
                         "destroy_ah",
                         "rereg_mr",
                         "query_mr",
                         "advise_mr",
                         "alloc_mw",
                         "dealloc_mw",
                         "alloc_dm",
                         "free_dm",
                         "resize_cq",
                         "modify_cq",
                         "create_srq",
                         "modify_srq",
                         "query_srq",
                         "destroy_srq",
                         "open_xrcd",
                         "close_xrcd",
                         "open_qp",
                         "attach_mcast",
                         "detach_mcast",
                         "query_pd",
                         "post_send",
                         "bind_mw",
                         "post_recv",
                         "post_srq_recv",
                         "poll_cq",
                         "req_notify_cq",
                         "next_poll",
                         "get_srq_num",
                         "alloc_td",
                         "dealloc_td",
                         "alloc_parent_domain",
                         "dealloc_parent_domain",
                         "memcpy_to_dm",
                         "memcpy_from_dm",
                         "query_rt_values"};
static_assert(std::size(kOps) == static_cast<size_t>(abi::kLastOp) + 1);

constexpr Name kQpStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

constexpr Name kWrOpcodes[] = {"RDMA_WRITE",
                               "RDMA_WRITE_WITH_IMM",
                               "SEND",
                               "SEND_WITH_IMM",
                               "RDMA_READ",
                               "ATOMIC_CMP_AND_SWP",
                               "ATOMIC_FETCH_AND_ADD",
                               "LOCAL_INV",
                               "BIND_MW",
                               "SEND_WITH_INV",
                               "TSO",
                               "DRIVER1",
                               "",
                               "",
                               "FLUSH",
                               "ATOMIC_WRITE"};

constexpr Name kWcOpcodes[] = {"SEND",    "RDMA_WRITE", "RDMA_READ", "COMP_SWAP", "FETCH_ADD",
                               "BIND_MW", "LOCAL_INV",  "",          "FLUSH",     "ATOMIC_WRITE"};

constexpr Name kWcStatuses[] = {"SUCCESS",
                                "LOC_LEN_ERR",
                                "LOC_QP_OP_ERR",
                                "LOC_EEC_OP_ERR",
                                "LOC_PROT_ERR",
                                "WR_FLUSH_ERR",
                                "MW_BIND_ERR",
                                "BAD_RESP_ERR",
                                "LOC_ACCESS_ERR",
                                "REM_INV_REQ_ERR",
                                "REM_ACCESS_ERR",
                                "REM_OP_ERR",
                                "RETRY_EXC_ERR",
                                "RNR_RETRY_EXC_ERR",
                                "LOC_RDD_VIOL_ERR",
                                "REM_INV_RD_REQ_ERR",
                                "REM_ABORT_ERR",
                                "INV_EECN_ERR",
                                "INV_EEC_STATE_ERR",
                                "FATAL_ERR",
                                "RESP_TIMEOUT_ERR",
                                "GENERAL_ERR",
                                "TM_ERR",
                                "TM_RNDV_INCOMPLETE"};

constexpr Name kEvents[] = {"CQ_ERR",
                            "QP_FATAL",
                            "QP_REQ_ERR",
                            "QP_ACCESS_ERR",
                            "COMM_EST",
                            "SQ_DRAINED",
                            "PATH_MIG",
                            "PATH_MIG_ERR",
                            "DEVICE_FATAL",
                            "PORT_ACTIVE",
                            "PORT_ERR",
                            "LID_CHANGE",
                            "PKEY_CHANGE",
                            "SM_CHANGE",
                            "SRQ_ERR",
                            "SRQ_LIMIT_REACHED",
                            "QP_LAST_WQE_REACHED",
                            "CLIENT_REREGISTER",
                            "GID_CHANGE",
                            "WQ_FATAL"};

constexpr Name kCmCommands[] = {
    "create_id",  "destroy_id", "bind_ip",    "resolve_ip",   "resolve_route", "query_route",
    "connect",    "listen",     "accept",     "reject",       "disconnect",    "init_qp_attr",
    "get_event",  "get_option", "set_option", "notify",       "join_ip_mcast", "leave_mcast",
    "migrate_id", "query",      "bind",       "resolve_addr", "join_mcast",    "open_channel"};
static_assert(std::size(kCmCommands) == abi::ucma::kCommands);

constexpr Name kCmEvents[] = {
    "ADDR_RESOLVED",   "ADDR_ERROR",       "ROUTE_RESOLVED", "ROUTE_ERROR",
    "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",  "UNREACHABLE",
    "REJECTED",        "ESTABLISHED",      "DISCONNECTED",   "DEVICE_REMOVAL",
    "MULTICAST_JOIN",  "MULTICAST_ERROR",  "ADDR_CHANGE",    "TIMEWAIT_EXIT"};

}  // namespace

Name name_of(abi::Op op) {
  return look_up(kOps, op);
}
Name name_of(abi::QpState state) {
  return look_up(kQpStates, state);
}
Name name_of(abi::WrOpcode opcode) {
  return look_up(kWrOpcodes, opcode);
}
Name name_of(abi::WcOpcode opcode) {
  if (opcode == abi::WcOpcode::kRecv) return "RECV";
  if (opcode == abi::WcOpcode::kRecvRdmaWithImm) return "RECV_RDMA_WITH_IMM";
  return look_up(kWcOpcodes, opcode);
}
Name name_of(abi::WcStatus status) {
  return look_up(kWcStatuses, status);
}
Name name_of(abi::EventType type) {
  return look_up(kEvents, type);
}
Name name_of(abi::ucma::Command command) {
  return look_up(kCmCommands, command);
}
Name name_of(abi::ucma::EventType type) {
  if (type == abi::ucma::EventType::kGetEventFailed) return "GET_EVENT_FAILED";
  return look_up(kCmEvents, type);
}

}  // namespace rocemu::journal
