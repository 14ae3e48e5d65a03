#include "emulator/explore/points/fault_table.h"

#include <fmt/format.h>

namespace rocemu::explore {
namespace {

constexpr PointKind kVerb = PointKind::kVerb, kWr = PointKind::kWorkRequest,
                    kSent = PointKind::kSendCompletion, kReceived = PointKind::kReceiveCompletion,
                    kFrame = PointKind::kFrame, kResponse = PointKind::kResponse,
                    kRequest = PointKind::kRequest, kCm = PointKind::kCm,
                    kCmEvent = PointKind::kCmEvent, kEvent = PointKind::kEvent;
constexpr Times kOnce = Times::kOnce, kEver = Times::kForEver;
constexpr Needs kConnection = Needs::kConnection, kSrq = Needs::kSrq;

constexpr std::string_view kTakesReceive = "SEND SEND_WITH_IMM SEND_WITH_INV RDMA_WRITE_WITH_IMM";

constexpr Fault kTable[] = {
    // Faults of verbs: the errnos of the man pages. If the page of a verb lists no errnos, those
    // that the kernel returns.
    {kVerb, "open_device import_device rdma_create_event_channel create_comp_channel",
     "{errno: EMFILE}", kOnce, "fails with EMFILE"},
    {kVerb,
     "alloc_pd reg_mr create_* alloc_* open_xrcd attach_mcast rdma_create_id rdma_join_multicast "
     "rdma_migrate_id resize_cq",
     "{errno: ENOMEM}", kOnce, "fails with ENOMEM"},
    {kVerb, "reg_mr create_* alloc_pd", "{errno: ENOMEM}", kEver, "fails with ENOMEM from then on"},
    {kVerb, "reg_mr create_qp create_srq create_cq create_ah rereg_mr modify_* query_* rdma_listen",
     "{errno: EINVAL}", kOnce, "fails with EINVAL"},
    {kVerb, "dealloc_* dereg_mr destroy_* free_dm close_xrcd", "{errno: EBUSY}", kOnce,
     "fails with EBUSY"},
    {kVerb, "modify_qp", "{errno: ENOMEM}", kOnce, "fails with ENOMEM"},
    {kVerb, "modify_qp", "{errno: ETIMEDOUT}", kOnce, "fails with ETIMEDOUT"},
    {kVerb, "query_*", "{errno: EIO}", kOnce, "fails with EIO"},
    {kVerb, "post_send post_recv post_srq_recv bind_mw", "{errno: ENOMEM}", kOnce,
     "fails with ENOMEM, as if the queue were full"},
    {kVerb, "post_send post_recv post_srq_recv bind_mw", "{errno: EINVAL}", kOnce,
     "fails with EINVAL"},
    {kVerb, "req_notify_cq", "{errno: EIO}", kOnce, "fails with EIO"},
    {kVerb, "rdma_bind_addr", "{errno: EADDRINUSE}", kOnce, "fails with EADDRINUSE"},
    {kVerb, "rdma_bind_addr rdma_resolve_addr", "{errno: EADDRNOTAVAIL}", kOnce,
     "fails with EADDRNOTAVAIL"},
    {kVerb, "rdma_listen", "{errno: EADDRINUSE}", kOnce, "fails with EADDRINUSE"},
    {kVerb, "rdma_resolve_addr", "{errno: ENODEV}", kOnce, "fails with ENODEV"},
    {kVerb, "rdma_resolve_route", "{errno: ENETUNREACH}", kOnce, "fails with ENETUNREACH"},
    {kVerb, "rdma_connect rdma_accept rdma_reject rdma_disconnect rdma_establish rdma_init_qp_attr",
     "{errno: EINVAL}", kOnce, "fails with EINVAL"},
    {kVerb, "rdma_connect rdma_accept", "{errno: ENOMEM}", kOnce, "fails with ENOMEM"},
    {kVerb, "rdma_set_option rdma_leave_multicast", "{errno: EINVAL}", kOnce, "fails with EINVAL"},

    // Faults with the statuses with which a send work request can complete before it was sent (IBTA
    // vol 1, 11.6.2).
    {kWr, "", "{status: LOC_LEN_ERR}", kOnce, "completes with LOC_LEN_ERR"},
    {kWr, "", "{status: LOC_QP_OP_ERR}", kOnce, "completes with LOC_QP_OP_ERR"},
    {kWr, "", "{status: LOC_PROT_ERR}", kOnce, "completes with LOC_PROT_ERR"},
    {kWr, "", "{status: WR_FLUSH_ERR}", kOnce, "completes with WR_FLUSH_ERR"},
    {kWr, "BIND_MW LOCAL_INV", "{status: MW_BIND_ERR}", kOnce, "completes with MW_BIND_ERR"},
    {kWr, "", "{raise: QP_FATAL}", kOnce, "its QP fails with IBV_EVENT_QP_FATAL"},

    // Faults with the statuses with which a work request can complete after it was executed.
    {kSent, "", "{status: RETRY_EXC_ERR}", kOnce, "completes with RETRY_EXC_ERR"},
    {kSent, "RDMA_READ COMP_SWAP FETCH_ADD", "{status: BAD_RESP_ERR}", kOnce,
     "completes with BAD_RESP_ERR"},
    {kSent, "", "{delay: 1s}", kOnce, "comes 1 s late"},
    {kSent, "", "overrun", kOnce, "finds its CQ full"},
    {kReceived, "", "{status: LOC_LEN_ERR}", kOnce, "completes with LOC_LEN_ERR"},
    {kReceived, "", "{status: LOC_PROT_ERR}", kOnce, "completes with LOC_PROT_ERR"},
    {kReceived, "", "{status: LOC_ACCESS_ERR}", kOnce, "completes with LOC_ACCESS_ERR"},
    {kReceived, "", "{status: WR_FLUSH_ERR}", kOnce, "completes with WR_FLUSH_ERR"},
    {kReceived, "", "{delay: 1s}", kOnce, "comes 1 s late"},
    {kReceived, "", "overrun", kOnce, "finds its CQ full"},

    {kFrame, "", "drop", kOnce, "is lost once"},
    {kFrame, "", "drop", kEver, "is lost for ever"},
    {kFrame, "", "duplicate", kOnce, "comes twice"},
    {kFrame, "", "{delay: 10s}", kOnce, "comes after its timeout"},
    {kFrame, "", "reorder", kOnce, "is overtaken by the next one"},
    {kFrame, "", "{corrupt: icrc}", kOnce, "is damaged"},
    {kResponse, "", "drop", kOnce, "is lost once"},
    {kResponse, "", "drop", kEver, "is lost from then on"},
    {kResponse, "", "duplicate", kOnce, "comes twice"},
    {kResponse, "", "{delay: 10s}", kOnce, "comes after the timeout"},
    {kResponse, "", "{corrupt: icrc}", kOnce, "is damaged"},

    {kRequest, kTakesReceive, "rnr", kOnce, "finds no receive once"},
    {kRequest, kTakesReceive, "rnr", kEver, "never finds a receive"},
    {kRequest, "", "{nak: invalid_request}", kOnce, "is answered with NAK invalid request"},
    {kRequest, "", "{nak: remote_access_error}", kOnce, "is answered with NAK remote access error"},
    {kRequest, "", "{nak: remote_operational_error}", kOnce,
     "is answered with NAK remote operational error"},
    {kRequest, "", "{nak: psn_sequence_error}", kOnce, "is answered with NAK PSN sequence error"},
    {kRequest, "", "silent", kEver, "is never answered"},

    {kCm, "", "drop", kOnce, "is lost once"},
    {kCm, "", "drop", kEver, "is lost for ever"},
    {kCm, "", "duplicate", kOnce, "comes twice"},
    {kCm, "", "{delay: 5s}", kOnce, "arrives after its retransmission"},
    {kCm, "REQ REP", "{reject: CONSUMER}", kOnce, "is rejected by the consumer"},
    {kCm, "REQ", "{reject: INVALID_SERVICE_ID}", kOnce, "is rejected, since no program listens"},
    {kCm, "REQ", "{reject: NO_RESOURCES}", kOnce, "is rejected, since resources are missing"},
    {kCm, "REQ REP", "{reject: STALE_CONNECTION}", kOnce,
     "is rejected as a message of a stale connection"},

    {kCmEvent, "ADDR_RESOLVED", "{event: ADDR_ERROR, status: -ETIMEDOUT}", kOnce,
     "is an ADDR_ERROR"},
    {kCmEvent, "ROUTE_RESOLVED", "{event: ROUTE_ERROR, status: -ETIMEDOUT}", kOnce,
     "is a ROUTE_ERROR"},
    {kCmEvent, "CONNECT_RESPONSE", "{event: CONNECT_ERROR, status: -EINVAL}", kOnce,
     "is a CONNECT_ERROR"},
    {kCmEvent, "CONNECT_RESPONSE ESTABLISHED", "{event: UNREACHABLE, status: -ETIMEDOUT}", kOnce,
     "is UNREACHABLE"},
    {kCmEvent, "MULTICAST_JOIN", "{event: MULTICAST_ERROR, status: -ENOMEM}", kOnce,
     "is a MULTICAST_ERROR"},
    // Linux raises UNREACHABLE for a connection whose peer's link address has changed
    // (cma_netevent_callback, since 6.0). librdmacm turns the active side's CONNECT_RESPONSE into
    // the program's ESTABLISHED.
    {kCmEvent, "CONNECT_RESPONSE ESTABLISHED", "{raise_cm: UNREACHABLE}", kOnce,
     "is followed by UNREACHABLE"},
    {kCmEvent, "CONNECT_RESPONSE ESTABLISHED", "{raise_cm: DISCONNECTED}", kOnce,
     "is followed by DISCONNECTED"},
    {kCmEvent,
     "ADDR_RESOLVED ROUTE_RESOLVED CONNECT_RESPONSE ESTABLISHED DISCONNECTED MULTICAST_JOIN",
     "{raise_cm: DEVICE_REMOVAL}", kOnce, "is followed by DEVICE_REMOVAL"},
    {kCmEvent, "DISCONNECTED", "{raise_cm: TIMEWAIT_EXIT}", kOnce, "is followed by TIMEWAIT_EXIT"},
    {kCmEvent, "ADDR_RESOLVED ROUTE_RESOLVED CONNECT_RESPONSE ESTABLISHED",
     "{raise_cm: ADDR_CHANGE}", kOnce, "is followed by ADDR_CHANGE"},

    // Linux drops an async event if it cannot allocate memory for the event
    // (ib_uverbs_async_handler).
    {kEvent, "", "drop", kOnce, "is lost"},
    {kEvent, "", "drop", kEver, "is lost from then on"},

    // Faults of the device and the process. They happen in each phase of the program, at the calls
    // and completions that begin the phase.
    {kVerb, "alloc_pd create_qp modify_qp destroy_qp rdma_connect rdma_accept rdma_disconnect",
     "kill", kOnce, "the process dies at {}"},
    {kSent, "", "kill", kOnce, "the process dies at {}"},
    {kReceived, "", "kill", kOnce, "the process dies at {}"},
    {kVerb, "create_qp modify_qp destroy_qp", "{port: {down: 1s}}", kOnce,
     "the port goes down for 1 s at {}"},
    {kSent, "", "{port: down}", kOnce, "the port goes down at {}"},
    // Two faults of the port: one is shorter than the usual retries, the other is longer.
    {kSent, "", "{port: {down: 100ms}}", kOnce, "the port goes down for 100 ms at {}"},
    {kSent, "", "{port: {down: 1s}}", kOnce, "the port goes down for 1 s at {}"},
    {kSent, "", "{gid: {index: 1, address: 10.9.8.7}}", kOnce, "GID 1 changes at {}"},
    {kVerb, "alloc_pd reg_mr create_qp modify_qp destroy_qp rdma_connect rdma_accept",
     "remove_device", kOnce, "the device is removed at {}"},
    {kSent, "", "remove_device", kOnce, "the device is removed at {}"},
    {kReceived, "", "remove_device", kOnce, "the device is removed at {}"},
    {kReceived, "", "{port: {down: 1s}}", kOnce, "the port goes down for 1 s at {}"},
    {kReceived, "", "{gid: {index: 1, address: 10.9.8.7}}", kOnce, "GID 1 changes at {}"},

    // Async events (ibv_get_async_event(3)). An event of the device or its port goes to each
    // process that has the device open.
    {kSent, "", "{raise: PORT_ERR}", kOnce, "comes with IBV_EVENT_PORT_ERR"},
    {kSent, "", "{raise: DEVICE_FATAL}", kOnce, "comes with IBV_EVENT_DEVICE_FATAL"},
    {kReceived, "", "{raise: PORT_ERR}", kOnce, "comes with IBV_EVENT_PORT_ERR"},
    {kReceived, "", "{raise: DEVICE_FATAL}", kOnce, "comes with IBV_EVENT_DEVICE_FATAL"},
    {kReceived, "", "{raise: QP_FATAL}", kOnce, "its QP fails with IBV_EVENT_QP_FATAL"},
    {kRequest, "", "{raise: QP_FATAL}", kOnce, "its QP fails with IBV_EVENT_QP_FATAL"},
    // A peer's request to a connected QP can be invalid or violate access rights, even if this QP
    // only sends (IBTA vol 1, 11.6.3.2). The peer's first packet may establish the communication.
    // The program may read the event at any time after that.
    {kSent, "", "{raise: QP_REQ_ERR}", kOnce, "comes with IBV_EVENT_QP_REQ_ERR", kConnection},
    {kSent, "", "{raise: QP_ACCESS_ERR}", kOnce, "comes with IBV_EVENT_QP_ACCESS_ERR", kConnection},
    {kSent, "", "{raise: COMM_EST}", kOnce, "comes with IBV_EVENT_COMM_EST", kConnection},
    {kReceived, "", "{raise: QP_REQ_ERR}", kOnce, "comes with IBV_EVENT_QP_REQ_ERR", kConnection},
    {kReceived, "", "{raise: QP_ACCESS_ERR}", kOnce, "comes with IBV_EVENT_QP_ACCESS_ERR",
     kConnection},
    {kReceived, "", "{raise: COMM_EST}", kOnce, "comes with IBV_EVENT_COMM_EST", kConnection},
    {kRequest, "", "{raise: COMM_EST}", kOnce, "comes with IBV_EVENT_COMM_EST"},
    {kReceived, "", "{raise: SRQ_LIMIT_REACHED}", kOnce, "comes with IBV_EVENT_SRQ_LIMIT_REACHED",
     kSrq},
    {kReceived, "", "{raise: SRQ_ERR}", kOnce, "comes with IBV_EVENT_SRQ_ERR", kSrq},
    {kReceived, "", "{raise: QP_LAST_WQE_REACHED}", kOnce,
     "comes with IBV_EVENT_QP_LAST_WQE_REACHED", kSrq},
};

constexpr EventNote kEventNotes[] = {
    {"CQ_ERR", "caused by `overrun`"},
    {"PORT_ACTIVE", "caused by `{port: {down: 1s}}`, when the second is over"},
    {"GID_CHANGE", "caused by `gid`"},
    {"SQ_DRAINED", "occurs only if the program requests it; `drop` can lose it"},
    {"PATH_MIG PATH_MIG_ERR", "RoCE has no alternate paths"},
    {"LID_CHANGE PKEY_CHANGE SM_CHANGE CLIENT_REREGISTER",
     "events of subnet managers, which RoCE does not have"},
    {"WQ_FATAL", "rocemu has no WQs"},
    {"DEVICE_SPEED_CHANGE", "a port keeps its speed"},
    {"ADDR_RESOLVED ROUTE_RESOLVED CONNECT_REQUEST CONNECT_RESPONSE ESTABLISHED MULTICAST_JOIN",
     "not faults: the program waits for them; a fault makes another event arrive "
     "instead"},
    {"REJECTED", "caused by `reject`"},
    {"ADDRINFO_RESOLVED ADDRINFO_ERROR USER INTERNAL", "librdmacm and the program generate them"},
};

bool has_needs(const FaultPoint& point, Needs needs) {
  switch (needs) {
    case Needs::kNothing:
      return true;
    case Needs::kConnection:
      return point.is_connected;
    case Needs::kSrq:
      return point.has_srq;
  }
  return false;
}

std::string_view text_of(Needs needs) {
  switch (needs) {
    case Needs::kNothing:
      return "";
    case Needs::kConnection:
      return " of connected QPs";
    case Needs::kSrq:
      return " of processes with an SRQ";
  }
  return "";
}

constexpr std::string_view kPlaceOfPoint = "{}", kAtPoint = " at {}";

bool has_name(std::string_view names, std::string_view name) {
  if (names.empty()) return true;
  while (!names.empty()) {
    const size_t end = names.find(' ');
    std::string_view one = names.substr(0, end);
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
    if (one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : one == name)
      return true;
  }
  return false;
}

}  // namespace

std::span<const Fault> fault_table() {
  return kTable;
}

std::span<const EventNote> event_notes() {
  return kEventNotes;
}

std::vector<Fault> faults_for(const FaultPoint& point) {
  std::vector<Fault> faults;
  for (const Fault& fault : kTable)
    if (fault.kind == point.kind && has_name(fault.names, point.name) &&
        has_needs(point, fault.needs))
      faults.push_back(fault);
  return faults;
}

std::string text_of(const FaultPoint& point, const Fault& fault) {
  std::string text(fault.text);
  const size_t place = text.find(kPlaceOfPoint);
  if (place == std::string::npos) return point.text() + " " + text;
  return text.replace(place, kPlaceOfPoint.size(), point.text());
}

std::string table_as_markdown() {
  std::string text = "| at | of | `do` | how often | what happens |\n|---|---|---|---|---|\n";
  for (const Fault& fault : kTable) {
    std::string_view at = name_of(fault.kind);
    if (fault.kind == kSent) at = "completion, send";
    if (fault.kind == kReceived) at = "completion, recv";
    if (fault.kind == kResponse) at = "frame, response";
    std::string_view what = fault.text;
    const size_t place = what.find(kAtPoint);
    if (place != std::string_view::npos) what = what.substr(0, place);
    text += fmt::format("| {} | {}{} | `{}` | {} | {} |\n", at,
                        fault.names.empty() ? "all" : fault.names, text_of(fault.needs),
                        fault.effect, fault.times == kOnce ? "once" : "for ever", what);
  }
  text += "\n| events without a row | why |\n|---|---|\n";
  for (const EventNote& note : kEventNotes)
    text += fmt::format("| {} | {} |\n", note.names, note.text);
  return text;
}

}  // namespace rocemu::explore
