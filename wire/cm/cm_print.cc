#include "wire/cm/cm_print.h"

#include <array>

#include "wire/line.h"

namespace rocemu::wire {
namespace {

void append_ids(uint32_t local, uint32_t remote, Line& line) {
  line.hex("id", local).hex("remote_id", remote);
}

void append(const CmReq& req, Line& line) {
  line.hex("id", req.local_comm_id)
      .hex("service", req.service_id)
      .hex("qpn", req.local_qpn)
      .decimal("psn", req.starting_psn.value())
      .decimal("transport", static_cast<uint8_t>(req.transport))
      .decimal("resources", req.responder_resources)
      .decimal("depth", req.initiator_depth)
      .decimal("retry", req.retry_count)
      .decimal("rnr_retry", req.rnr_retry_count)
      .decimal("mtu", req.path_mtu)
      .word("from")
      .word(to_string(req.primary.local_gid))
      .word("to")
      .word(to_string(req.primary.remote_gid));
}

void append(const CmMra& mra, Line& line) {
  append_ids(mra.local_comm_id, mra.remote_comm_id, line);
  line.decimal("message", static_cast<uint8_t>(mra.message))
      .decimal("timeout", mra.service_timeout);
}

void append(const CmRej& rej, Line& line) {
  append_ids(rej.local_comm_id, rej.remote_comm_id, line);
  line.decimal("message", static_cast<uint8_t>(rej.message))
      .decimal("reason", rej.reason)
      .word(reject_reason_name(rej.reason));
}

void append(const CmRep& rep, Line& line) {
  append_ids(rep.local_comm_id, rep.remote_comm_id, line);
  line.hex("qpn", rep.local_qpn)
      .decimal("psn", rep.starting_psn.value())
      .decimal("resources", rep.responder_resources)
      .decimal("depth", rep.initiator_depth)
      .decimal("rnr_retry", rep.rnr_retry_count);
}

void append(const CmRtu& rtu, Line& line) {
  append_ids(rtu.local_comm_id, rtu.remote_comm_id, line);
}

void append(const CmDreq& dreq, Line& line) {
  append_ids(dreq.local_comm_id, dreq.remote_comm_id, line);
  line.hex("remote_qpn", dreq.remote_qpn);
}

void append(const CmDrep& drep, Line& line) {
  append_ids(drep.local_comm_id, drep.remote_comm_id, line);
}

void append(const CmSidrReq& req, Line& line) {
  line.hex("id", req.request_id).hex("service", req.service_id);
}

void append(const CmSidrRep& rep, Line& line) {
  line.hex("id", rep.request_id)
      .decimal("status", rep.status)
      .hex("qpn", rep.qpn)
      .hex("service", rep.service_id)
      .hex("qkey", rep.qkey);
}

void append(const CmLap& lap, Line& line) {
  append_ids(lap.local_comm_id, lap.remote_comm_id, line);
  line.hex("remote_qpn", lap.remote_qpn);
}

void append(const CmApr& apr, Line& line) {
  append_ids(apr.local_comm_id, apr.remote_comm_id, line);
  line.decimal("status", apr.status);
}

}  // namespace

std::string_view name(CmAttribute attribute) {
  switch (attribute) {
    case CmAttribute::kReq:
      return "REQ";
    case CmAttribute::kMra:
      return "MRA";
    case CmAttribute::kRej:
      return "REJ";
    case CmAttribute::kRep:
      return "REP";
    case CmAttribute::kRtu:
      return "RTU";
    case CmAttribute::kDreq:
      return "DREQ";
    case CmAttribute::kDrep:
      return "DREP";
    case CmAttribute::kSidrReq:
      return "SIDR_REQ";
    case CmAttribute::kSidrRep:
      return "SIDR_REP";
    case CmAttribute::kLap:
      return "LAP";
    case CmAttribute::kApr:
      return "APR";
  }
  return "unknown";
}

std::string_view reject_reason_name(uint16_t reason) {
  constexpr std::array<std::string_view, 34> kNames = {
      "unknown",
      "no_qp",
      "no_eec",
      "no_resources",
      "timeout",
      "unsupported_request",
      "invalid_comm_id",
      "invalid_comm_instance",
      "invalid_service_id",
      "invalid_transport_service_type",
      "stale_connection",
      "rdc_does_not_exist",
      "primary_remote_gid",
      "primary_remote_lid",
      "invalid_primary_sl",
      "invalid_primary_traffic_class",
      "invalid_primary_hop_limit",
      "invalid_primary_packet_rate",
      "alternate_remote_gid",
      "alternate_remote_lid",
      "invalid_alternate_sl",
      "invalid_alternate_traffic_class",
      "invalid_alternate_hop_limit",
      "invalid_alternate_packet_rate",
      "port_and_cm_redirection",
      "port_redirection",
      "invalid_path_mtu",
      "insufficient_responder_resources",
      "consumer",
      "rnr_retry_count",
      "duplicate_local_comm_id",
      "invalid_class_version",
      "invalid_primary_flow_label",
      "invalid_alternate_flow_label",
  };
  return reason < kNames.size() ? kNames[reason] : kNames[0];
}

std::string to_string(const CmMad& mad) {
  Line line("CM");
  line.word(name(attribute_of(mad.message)));
  std::visit([&](const auto& message) { append(message, line); }, mad.message);
  return line.hex("tid", mad.transaction_id).take();
}

std::string to_string(const MadHeader& header) {
  return Line("MAD")
      .hex("class", header.mgmt_class)
      .decimal("version", header.class_version)
      .hex("method", header.method)
      .hex("attribute", header.attribute_id)
      .hex("status", header.status)
      .hex("tid", header.transaction_id)
      .take();
}

}  // namespace rocemu::wire
