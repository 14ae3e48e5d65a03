#include "wire/cm/cm_messages.h"

#include <optional>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

constexpr size_t kDataSize = kMadSize - MadHeader::kSize;
using Data = std::span<const uint8_t, kDataSize>;
template <class Message>
using Refusable = Result<Message, MadError>;

using Gid = std::array<uint8_t, 16>;

// Returns `width` bits of a byte, `shift` bits above its lowest.
constexpr uint8_t bits(uint8_t byte, unsigned shift, unsigned width) {
  return static_cast<uint8_t>(uint32_t{byte} >> shift & ((1u << width) - 1));
}
constexpr uint8_t at(unsigned value, unsigned shift, unsigned width) {
  return static_cast<uint8_t>((value & ((1u << width) - 1)) << shift);
}

//  +-------------------------------+-------------------------------+
//  |           local LID           |          remote LID           |
//  +-------------------------------+-------------------------------+
//  |                        local GID (128)                        |
//  +---------------------------------------------------------------+
//  |                        remote GID (128)                       |
//  +---------------------------------------+-----------+-----------+
//  |              flow label               | reserved  |   rate    |
//  +---------------+---------------+-------+-+---------+-----------+
//  | traffic class |   hop limit   |  SL   |S| res.|ACK timeout|res|
//  +---------------+---------------+-------+-+-----+-----------+---+
//  S subnet local
struct PathLayout {
  Be16 local_lid;
  Be16 remote_lid;
  Gid local_gid;
  Gid remote_gid;
  Be32 flow_label_and_rate;
  uint8_t traffic_class;
  uint8_t hop_limit;
  uint8_t sl_and_subnet_local;
  uint8_t local_ack_timeout;
};
static_assert(sizeof(PathLayout) == 44);

CmPath read(const PathLayout& layout) {
  const uint32_t word = layout.flow_label_and_rate.get();
  return {.local_lid = layout.local_lid.get(),
          .remote_lid = layout.remote_lid.get(),
          .local_gid = {layout.local_gid},
          .remote_gid = {layout.remote_gid},
          .flow_label = word >> 12,
          .packet_rate = static_cast<uint8_t>(word & 0x3f),
          .traffic_class = layout.traffic_class,
          .hop_limit = layout.hop_limit,
          .sl = bits(layout.sl_and_subnet_local, 4, 4),
          .subnet_local = bits(layout.sl_and_subnet_local, 3, 1) != 0,
          .local_ack_timeout = bits(layout.local_ack_timeout, 3, 5)};
}

PathLayout write(const CmPath& path) {
  return {
      .local_lid = Be16(path.local_lid),
      .remote_lid = Be16(path.remote_lid),
      .local_gid = path.local_gid.bytes,
      .remote_gid = path.remote_gid.bytes,
      .flow_label_and_rate = Be32(path.flow_label << 12 | (path.packet_rate & 0x3fu)),
      .traffic_class = path.traffic_class,
      .hop_limit = path.hop_limit,
      .sl_and_subnet_local = static_cast<uint8_t>(at(path.sl, 4, 4) | at(path.subnet_local, 3, 1)),
      .local_ack_timeout = at(path.local_ack_timeout, 3, 5)};
}

struct ReqLayout {
  Be32 local_comm_id;
  Be32 reserved1;
  Be64 service_id;
  Be64 local_ca_guid;
  Be32 reserved2;
  Be32 local_qkey;
  Be24 local_qpn;
  uint8_t responder_resources;
  Be24 local_eecn;
  uint8_t initiator_depth;
  Be24 remote_eecn;
  uint8_t remote_timeout_transport_flow;  // 5, 2 and 1 bits
  Be24 starting_psn;
  uint8_t local_timeout_retry_count;  // 5, 3
  Be16 pkey;
  uint8_t mtu_rdc_rnr_retry;         // 4, 1, 3
  uint8_t max_retries_srq_extended;  // 4, 1, 3
  PathLayout primary;
  PathLayout alternate;
  std::array<uint8_t, 92> private_data;
};
static_assert(sizeof(ReqLayout) == kDataSize && alignof(ReqLayout) == 1);

CmReq read(const ReqLayout& layout) {
  return CmReq{
      .local_comm_id = layout.local_comm_id.get(),
      .service_id = layout.service_id.get(),
      .local_ca_guid = layout.local_ca_guid.get(),
      .local_qkey = layout.local_qkey.get(),
      .local_qpn = layout.local_qpn.get(),
      .responder_resources = layout.responder_resources,
      .local_eecn = layout.local_eecn.get(),
      .initiator_depth = layout.initiator_depth,
      .remote_eecn = layout.remote_eecn.get(),
      .remote_cm_response_timeout = bits(layout.remote_timeout_transport_flow, 3, 5),
      .transport = static_cast<CmTransport>(bits(layout.remote_timeout_transport_flow, 1, 2)),
      .end_to_end_flow_control = bits(layout.remote_timeout_transport_flow, 0, 1) != 0,
      .starting_psn = Psn(layout.starting_psn.get()),
      .local_cm_response_timeout = bits(layout.local_timeout_retry_count, 3, 5),
      .retry_count = bits(layout.local_timeout_retry_count, 0, 3),
      .pkey = layout.pkey.get(),
      .path_mtu = bits(layout.mtu_rdc_rnr_retry, 4, 4),
      .rdc_exists = bits(layout.mtu_rdc_rnr_retry, 3, 1) != 0,
      .rnr_retry_count = bits(layout.mtu_rdc_rnr_retry, 0, 3),
      .max_cm_retries = bits(layout.max_retries_srq_extended, 4, 4),
      .srq = bits(layout.max_retries_srq_extended, 3, 1) != 0,
      .extended_transport = bits(layout.max_retries_srq_extended, 0, 3),
      .primary = read(layout.primary),
      .alternate = read(layout.alternate),
      .private_data = layout.private_data};
}

ReqLayout write(const CmReq& req) {
  return {
      .local_comm_id = Be32(req.local_comm_id),
      .reserved1 = {},
      .service_id = Be64(req.service_id),
      .local_ca_guid = Be64(req.local_ca_guid),
      .reserved2 = {},
      .local_qkey = Be32(req.local_qkey),
      .local_qpn = Be24(req.local_qpn),
      .responder_resources = req.responder_resources,
      .local_eecn = Be24(req.local_eecn),
      .initiator_depth = req.initiator_depth,
      .remote_eecn = Be24(req.remote_eecn),
      .remote_timeout_transport_flow = static_cast<uint8_t>(
          at(req.remote_cm_response_timeout, 3, 5) |
          at(static_cast<unsigned>(req.transport), 1, 2) | at(req.end_to_end_flow_control, 0, 1)),
      .starting_psn = Be24(req.starting_psn.value()),
      .local_timeout_retry_count =
          static_cast<uint8_t>(at(req.local_cm_response_timeout, 3, 5) | at(req.retry_count, 0, 3)),
      .pkey = Be16(req.pkey),
      .mtu_rdc_rnr_retry = static_cast<uint8_t>(at(req.path_mtu, 4, 4) | at(req.rdc_exists, 3, 1) |
                                                at(req.rnr_retry_count, 0, 3)),
      .max_retries_srq_extended = static_cast<uint8_t>(
          at(req.max_cm_retries, 4, 4) | at(req.srq, 3, 1) | at(req.extended_transport, 0, 3)),
      .primary = write(req.primary),
      .alternate = write(req.alternate),
      .private_data = req.private_data};
}

struct MraLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  uint8_t message;          // 2 bits
  uint8_t service_timeout;  // 5 bits
  std::array<uint8_t, 222> private_data;
};
static_assert(sizeof(MraLayout) == kDataSize && alignof(MraLayout) == 1);

Refusable<CmMra> read(const MraLayout& layout) {
  const uint8_t message = bits(layout.message, 6, 2);
  if (message > static_cast<uint8_t>(CmMraed::kLap)) return MadError::kReservedValue;
  return CmMra{.local_comm_id = layout.local_comm_id.get(),
               .remote_comm_id = layout.remote_comm_id.get(),
               .message = static_cast<CmMraed>(message),
               .service_timeout = bits(layout.service_timeout, 3, 5),
               .private_data = layout.private_data};
}

MraLayout write(const CmMra& mra) {
  return {.local_comm_id = Be32(mra.local_comm_id),
          .remote_comm_id = Be32(mra.remote_comm_id),
          .message = at(static_cast<unsigned>(mra.message), 6, 2),
          .service_timeout = at(mra.service_timeout, 3, 5),
          .private_data = mra.private_data};
}

struct RejLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  uint8_t message;      // 2 bits
  uint8_t info_length;  // 7 bits
  Be16 reason;
  CmInfo info;
  std::array<uint8_t, 148> private_data;
};
static_assert(sizeof(RejLayout) == kDataSize && alignof(RejLayout) == 1);

Refusable<CmRej> read(const RejLayout& layout) {
  const uint8_t message = bits(layout.message, 6, 2);
  if (message > static_cast<uint8_t>(CmRejected::kNoMessage)) return MadError::kReservedValue;
  const uint8_t info_length = bits(layout.info_length, 1, 7);
  if (info_length > kCmInfoSize) return MadError::kBadLength;
  return CmRej{.local_comm_id = layout.local_comm_id.get(),
               .remote_comm_id = layout.remote_comm_id.get(),
               .message = static_cast<CmRejected>(message),
               .info_length = info_length,
               .reason = layout.reason.get(),
               .info = layout.info,
               .private_data = layout.private_data};
}

RejLayout write(const CmRej& rej) {
  return {.local_comm_id = Be32(rej.local_comm_id),
          .remote_comm_id = Be32(rej.remote_comm_id),
          .message = at(static_cast<unsigned>(rej.message), 6, 2),
          .info_length = at(rej.info_length, 1, 7),
          .reason = Be16(rej.reason),
          .info = rej.info,
          .private_data = rej.private_data};
}

struct RepLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be32 local_qkey;
  Be24 local_qpn;
  uint8_t reserved1;
  Be24 local_eecn;
  uint8_t reserved2;
  Be24 starting_psn;
  uint8_t reserved3;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t ack_delay_failover_flow;  // 5, 2, 1
  uint8_t rnr_retry_srq;            // 3, 1
  Be64 local_ca_guid;
  std::array<uint8_t, 196> private_data;
};
static_assert(sizeof(RepLayout) == kDataSize && alignof(RepLayout) == 1);

Refusable<CmRep> read(const RepLayout& layout) {
  const uint8_t failover_accepted = bits(layout.ack_delay_failover_flow, 1, 2);
  if (failover_accepted > 2) return MadError::kReservedValue;
  return CmRep{.local_comm_id = layout.local_comm_id.get(),
               .remote_comm_id = layout.remote_comm_id.get(),
               .local_qkey = layout.local_qkey.get(),
               .local_qpn = layout.local_qpn.get(),
               .local_eecn = layout.local_eecn.get(),
               .starting_psn = Psn(layout.starting_psn.get()),
               .responder_resources = layout.responder_resources,
               .initiator_depth = layout.initiator_depth,
               .target_ack_delay = bits(layout.ack_delay_failover_flow, 3, 5),
               .failover_accepted = failover_accepted,
               .end_to_end_flow_control = bits(layout.ack_delay_failover_flow, 0, 1) != 0,
               .rnr_retry_count = bits(layout.rnr_retry_srq, 5, 3),
               .srq = bits(layout.rnr_retry_srq, 4, 1) != 0,
               .local_ca_guid = layout.local_ca_guid.get(),
               .private_data = layout.private_data};
}

RepLayout write(const CmRep& rep) {
  return {.local_comm_id = Be32(rep.local_comm_id),
          .remote_comm_id = Be32(rep.remote_comm_id),
          .local_qkey = Be32(rep.local_qkey),
          .local_qpn = Be24(rep.local_qpn),
          .reserved1 = 0,
          .local_eecn = Be24(rep.local_eecn),
          .reserved2 = 0,
          .starting_psn = Be24(rep.starting_psn.value()),
          .reserved3 = 0,
          .responder_resources = rep.responder_resources,
          .initiator_depth = rep.initiator_depth,
          .ack_delay_failover_flow = static_cast<uint8_t>(at(rep.target_ack_delay, 3, 5) |
                                                          at(rep.failover_accepted, 1, 2) |
                                                          at(rep.end_to_end_flow_control, 0, 1)),
          .rnr_retry_srq = static_cast<uint8_t>(at(rep.rnr_retry_count, 5, 3) | at(rep.srq, 4, 1)),
          .local_ca_guid = Be64(rep.local_ca_guid),
          .private_data = rep.private_data};
}

// RTU and DREP have the same layout.
struct RtuLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  std::array<uint8_t, 224> private_data;
};
static_assert(sizeof(RtuLayout) == kDataSize && alignof(RtuLayout) == 1);

template <class Message>
Message read(const RtuLayout& layout) {
  return Message{.local_comm_id = layout.local_comm_id.get(),
                 .remote_comm_id = layout.remote_comm_id.get(),
                 .private_data = layout.private_data};
}

template <class Message>
RtuLayout write_rtu(const Message& message) {
  return {.local_comm_id = Be32(message.local_comm_id),
          .remote_comm_id = Be32(message.remote_comm_id),
          .private_data = message.private_data};
}
RtuLayout write(const CmRtu& rtu) {
  return write_rtu(rtu);
}
RtuLayout write(const CmDrep& drep) {
  return write_rtu(drep);
}

struct DreqLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be24 remote_qpn;
  uint8_t reserved;
  std::array<uint8_t, 220> private_data;
};
static_assert(sizeof(DreqLayout) == kDataSize && alignof(DreqLayout) == 1);

CmDreq read(const DreqLayout& layout) {
  return CmDreq{.local_comm_id = layout.local_comm_id.get(),
                .remote_comm_id = layout.remote_comm_id.get(),
                .remote_qpn = layout.remote_qpn.get(),
                .private_data = layout.private_data};
}

DreqLayout write(const CmDreq& dreq) {
  return {.local_comm_id = Be32(dreq.local_comm_id),
          .remote_comm_id = Be32(dreq.remote_comm_id),
          .remote_qpn = Be24(dreq.remote_qpn),
          .reserved = 0,
          .private_data = dreq.private_data};
}

struct SidrReqLayout {
  Be32 request_id;
  Be16 pkey;
  Be16 reserved;
  Be64 service_id;
  std::array<uint8_t, 216> private_data;
};
static_assert(sizeof(SidrReqLayout) == kDataSize && alignof(SidrReqLayout) == 1);

CmSidrReq read(const SidrReqLayout& layout) {
  return CmSidrReq{.request_id = layout.request_id.get(),
                   .pkey = layout.pkey.get(),
                   .service_id = layout.service_id.get(),
                   .private_data = layout.private_data};
}

SidrReqLayout write(const CmSidrReq& req) {
  return {.request_id = Be32(req.request_id),
          .pkey = Be16(req.pkey),
          .reserved = {},
          .service_id = Be64(req.service_id),
          .private_data = req.private_data};
}

struct SidrRepLayout {
  Be32 request_id;
  uint8_t status;
  uint8_t info_length;
  Be16 reserved1;
  Be24 qpn;
  uint8_t reserved2;
  Be64 service_id;
  Be32 qkey;
  CmInfo info;
  std::array<uint8_t, 136> private_data;
};
static_assert(sizeof(SidrRepLayout) == kDataSize && alignof(SidrRepLayout) == 1);

Refusable<CmSidrRep> read(const SidrRepLayout& layout) {
  if (layout.info_length > kCmInfoSize) return MadError::kBadLength;
  return CmSidrRep{.request_id = layout.request_id.get(),
                   .status = layout.status,
                   .info_length = layout.info_length,
                   .qpn = layout.qpn.get(),
                   .service_id = layout.service_id.get(),
                   .qkey = layout.qkey.get(),
                   .info = layout.info,
                   .private_data = layout.private_data};
}

SidrRepLayout write(const CmSidrRep& rep) {
  return {.request_id = Be32(rep.request_id),
          .status = rep.status,
          .info_length = rep.info_length,
          .reserved1 = {},
          .qpn = Be24(rep.qpn),
          .reserved2 = 0,
          .service_id = Be64(rep.service_id),
          .qkey = Be32(rep.qkey),
          .info = rep.info,
          .private_data = rep.private_data};
}

// The path in a LAP has the same fields as one in a REQ, in another order.
struct LapLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  Be32 reserved1;
  Be24 remote_qpn;
  uint8_t remote_timeout;  // 5 bits
  Be32 reserved2;
  Be16 local_lid;
  Be16 remote_lid;
  Gid local_gid;
  Gid remote_gid;
  Be24 flow_label;  // 20 bits
  uint8_t traffic_class;
  uint8_t hop_limit;
  uint8_t packet_rate;          // the lower 6 bits
  uint8_t sl_and_subnet_local;  // 4, 1
  uint8_t local_ack_timeout;    // 5
  std::array<uint8_t, 168> private_data;
};
static_assert(sizeof(LapLayout) == kDataSize && alignof(LapLayout) == 1);

CmLap read(const LapLayout& layout) {
  return CmLap{.local_comm_id = layout.local_comm_id.get(),
               .remote_comm_id = layout.remote_comm_id.get(),
               .remote_qpn = layout.remote_qpn.get(),
               .remote_cm_response_timeout = bits(layout.remote_timeout, 3, 5),
               .alternate = {.local_lid = layout.local_lid.get(),
                             .remote_lid = layout.remote_lid.get(),
                             .local_gid = {layout.local_gid},
                             .remote_gid = {layout.remote_gid},
                             .flow_label = layout.flow_label.get() >> 4,
                             .packet_rate = bits(layout.packet_rate, 0, 6),
                             .traffic_class = layout.traffic_class,
                             .hop_limit = layout.hop_limit,
                             .sl = bits(layout.sl_and_subnet_local, 4, 4),
                             .subnet_local = bits(layout.sl_and_subnet_local, 3, 1) != 0,
                             .local_ack_timeout = bits(layout.local_ack_timeout, 3, 5)},
               .private_data = layout.private_data};
}

LapLayout write(const CmLap& lap) {
  const CmPath& path = lap.alternate;
  return {
      .local_comm_id = Be32(lap.local_comm_id),
      .remote_comm_id = Be32(lap.remote_comm_id),
      .reserved1 = {},
      .remote_qpn = Be24(lap.remote_qpn),
      .remote_timeout = at(lap.remote_cm_response_timeout, 3, 5),
      .reserved2 = {},
      .local_lid = Be16(path.local_lid),
      .remote_lid = Be16(path.remote_lid),
      .local_gid = path.local_gid.bytes,
      .remote_gid = path.remote_gid.bytes,
      .flow_label = Be24(path.flow_label << 4),
      .traffic_class = path.traffic_class,
      .hop_limit = path.hop_limit,
      .packet_rate = at(path.packet_rate, 0, 6),
      .sl_and_subnet_local = static_cast<uint8_t>(at(path.sl, 4, 4) | at(path.subnet_local, 3, 1)),
      .local_ack_timeout = at(path.local_ack_timeout, 3, 5),
      .private_data = lap.private_data};
}

struct AprLayout {
  Be32 local_comm_id;
  Be32 remote_comm_id;
  uint8_t info_length;
  uint8_t status;
  Be16 reserved;
  CmInfo info;
  std::array<uint8_t, 148> private_data;
};
static_assert(sizeof(AprLayout) == kDataSize && alignof(AprLayout) == 1);

Refusable<CmApr> read(const AprLayout& layout) {
  if (layout.info_length > kCmInfoSize) return MadError::kBadLength;
  return CmApr{.local_comm_id = layout.local_comm_id.get(),
               .remote_comm_id = layout.remote_comm_id.get(),
               .info_length = layout.info_length,
               .status = layout.status,
               .info = layout.info,
               .private_data = layout.private_data};
}

AprLayout write(const CmApr& apr) {
  return {.local_comm_id = Be32(apr.local_comm_id),
          .remote_comm_id = Be32(apr.remote_comm_id),
          .info_length = apr.info_length,
          .status = apr.status,
          .reserved = {},
          .info = apr.info,
          .private_data = apr.private_data};
}

template <class Message>
Refusable<CmMessage> widen(const Message& message) {
  return CmMessage(message);
}
template <class Message>
Refusable<CmMessage> widen(const Refusable<Message>& message) {
  if (!message) return message.error();
  return CmMessage(*message);
}

Refusable<CmMessage> parse_message(uint16_t attribute, Data data) {
  switch (static_cast<CmAttribute>(attribute)) {
    case CmAttribute::kReq:
      return widen(read(load<ReqLayout>(data)));
    case CmAttribute::kMra:
      return widen(read(load<MraLayout>(data)));
    case CmAttribute::kRej:
      return widen(read(load<RejLayout>(data)));
    case CmAttribute::kRep:
      return widen(read(load<RepLayout>(data)));
    case CmAttribute::kRtu:
      return widen(read<CmRtu>(load<RtuLayout>(data)));
    case CmAttribute::kDreq:
      return widen(read(load<DreqLayout>(data)));
    case CmAttribute::kDrep:
      return widen(read<CmDrep>(load<RtuLayout>(data)));
    case CmAttribute::kSidrReq:
      return widen(read(load<SidrReqLayout>(data)));
    case CmAttribute::kSidrRep:
      return widen(read(load<SidrRepLayout>(data)));
    case CmAttribute::kLap:
      return widen(read(load<LapLayout>(data)));
    case CmAttribute::kApr:
      return widen(read(load<AprLayout>(data)));
  }
  return MadError::kUnknownAttribute;
}

std::optional<MadError> check_header(const MadHeader& header) {
  if (header.base_version != kMadBaseVersion) return MadError::kBadBaseVersion;
  if (header.mgmt_class != kMadClassCm) return MadError::kNotCm;
  if (header.class_version != kCmClassVersion) return MadError::kBadClassVersion;
  if (header.method != static_cast<uint8_t>(MadMethod::kSend)) return MadError::kBadMethod;
  return std::nullopt;
}

}  // namespace

CmAttribute attribute_of(const CmMessage& message) {
  return std::visit([](const auto& value) { return value.kAttribute; }, message);
}

Result<CmMad, MadError> parse_cm_mad(std::span<const uint8_t> bytes) {
  if (bytes.size() < kMadSize) return MadError::kTruncated;
  if (bytes.size() > kMadSize) return MadError::kTooLong;
  const MadHeader header = parse_mad_header(bytes.first<MadHeader::kSize>());
  if (const auto error = check_header(header)) return *error;
  const auto message = parse_message(header.attribute_id, bytes.last<kDataSize>());
  if (!message) return message.error();
  return CmMad{.transaction_id = header.transaction_id, .message = *message};
}

void emit(const CmMad& mad, std::span<uint8_t, kMadSize> bytes) {
  emit(MadHeader{.mgmt_class = kMadClassCm,
                 .class_version = kCmClassVersion,
                 .method = static_cast<uint8_t>(MadMethod::kSend),
                 .transaction_id = mad.transaction_id,
                 .attribute_id = static_cast<uint16_t>(attribute_of(mad.message))},
       bytes.first<MadHeader::kSize>());
  const auto data = bytes.last<kDataSize>();
  std::visit([&](const auto& message) { store(write(message), data); }, mad.message);
}

}  // namespace rocemu::wire
