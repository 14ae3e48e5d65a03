// Tests the connection manager's messages: all messages in rxe's captures in both directions, every
// field at its position in IBTA vol 1, 12.6 and 12.11, and every reason to refuse a message.
#include "wire/cm/cm_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tests/wire/bytes.h"
#include "tests/wire/captures.h"
#include "wire/cm/cm_print.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::wire {
namespace {

std::vector<Packet> captured_mads() {
  std::vector<Packet> packets;
  for (const ByteVector& frame : rxe_roce_frames()) {
    const auto packet = parse_frame(frame);
    if (packet->bth.dest_qpn == kGsiQpn) packets.push_back(*packet);
  }
  return packets;
}

ByteVector emitted_mad(const CmMad& mad) {
  ByteVector bytes(kMadSize, kDirt);
  emit(mad, std::span(bytes).first<kMadSize>());
  return bytes;
}

TEST(CmCaptures, EveryMadOfRxeIsEmittedAgainByteForByte) {
  std::map<std::string, int> seen;
  for (const Packet& packet : captured_mads()) {
    const auto mad = parse_cm_mad(packet.payload);
    ASSERT_TRUE(mad) << name(mad.error());
    ++seen[std::string(name(attribute_of(mad->message)))];
    EXPECT_EQ(emitted_mad(*mad), ByteVector(packet.payload.begin(), packet.payload.end()))
        << to_string(*mad);
  }
  const std::map<std::string, int> expected = {{"REQ", 7},      {"REJ", 1},     {"REP", 6},
                                               {"RTU", 5},      {"DREQ", 7},    {"DREP", 7},
                                               {"SIDR_REQ", 1}, {"SIDR_REP", 1}};
  EXPECT_EQ(seen, expected);
}

// The values are those that tshark shows, except for flow label and packet rate, for which tshark
// 4.0 shows other bits. rxe computes the flow label from the two ports (31 * 34331 + 7174, 20
// bits).
TEST(CmCaptures, TheFirstRequestHasTheFieldsOfRpingsConnection) {
  const auto mad = parse_cm_mad([] {
    for (const Capture& capture : rxe_captures()) {
      if (capture.name == "rping.pcap") return parse_frame(capture.frames[0])->payload;
    }
    return std::span<const uint8_t>();
  }());
  ASSERT_TRUE(mad);
  EXPECT_EQ(mad->transaction_id, 0x00000004a2c10e30u);
  CmReq expected{.local_comm_id = 0x300ec1a2,
                 .service_id = 0x0000000001061c06,
                 .local_ca_guid = 0x000000fffe000702,
                 .local_qpn = 0x11,
                 .responder_resources = 1,
                 .initiator_depth = 1,
                 .remote_cm_response_timeout = 20,
                 .starting_psn = Psn(0xcdba7a),
                 .local_cm_response_timeout = 20,
                 .retry_count = 7,
                 .pkey = 0xffff,
                 .path_mtu = 5,
                 .rnr_retry_count = 7,
                 .max_cm_retries = 15,
                 .primary = {.local_lid = 0xffff,
                             .remote_lid = 0xffff,
                             .local_gid = IpAddress::from_v4(10, 7, 0, 2),
                             .remote_gid = IpAddress::from_v4(10, 7, 0, 1),
                             .flow_label = 0x0594b,
                             .hop_limit = 64,
                             .local_ack_timeout = 19}};
  const auto& req = std::get<CmReq>(mad->message);
  expected.private_data = req.private_data;
  EXPECT_EQ(req, expected);
  const auto ip = parse_ip_cm_header(std::span(req.private_data).first<IpCmHeader::kSize>());
  ASSERT_TRUE(ip);
  EXPECT_EQ(*ip, (IpCmHeader{.source_port = 0x861b,
                             .source = IpAddress::from_v4(10, 7, 0, 2),
                             .destination = IpAddress::from_v4(10, 7, 0, 1)}));
  EXPECT_EQ(req.service_id, ip_cm_service_id(IpCmProtocol::kTcp, 7174));
}

// ---- The position of each field ----

// A field in the bits [offset, offset + width) after the MAD header. Bits are counted as in the
// tables of 12.6 and 12.11, from the most significant bit of byte 0.
struct Field {
  const char* name;
  size_t offset;
  size_t width;
  std::function<void(CmMessage&)> fill;  // fills the field with ones
};

// Returns a value whose bits are all ones. A number then has more ones than its field has bits, and
// emitting it must not change the fields next to it.
template <class Value>
Value ones(size_t width) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>((uint64_t{1} << width) - 1);
  } else {
    return static_cast<Value>(~uint64_t{0});
  }
}

template <class Message, class Value>
Field number(const char* name, size_t byte, size_t bit, size_t width, Value Message::*member) {
  return {name, byte * 8 + bit, width, [member, width](CmMessage& message) {
            std::get<Message>(message).*member = ones<Value>(width);
          }};
}

template <class Message, size_t Size>
Field bytes(const char* name, size_t byte, std::array<uint8_t, Size> Message::*member) {
  return {name, byte * 8, Size * 8,
          [member](CmMessage& message) { (std::get<Message>(message).*member).fill(0xff); }};
}

template <class Message>
Field psn(const char* name, size_t byte, Psn Message::*member) {
  return {name, byte * 8, 24,
          [member](CmMessage& message) { std::get<Message>(message).*member = Psn(0xffffff); }};
}

template <class Message, class Value>
Field of_path(const char* name, size_t byte, size_t bit, size_t width, CmPath Message::*path,
              Value CmPath::*member) {
  return {name, byte * 8 + bit, width, [path, member, width](CmMessage& message) {
            std::get<Message>(message).*path.*member = ones<Value>(width);
          }};
}

template <class Message>
Field gid_of_path(const char* name, size_t byte, CmPath Message::*path, IpAddress CmPath::*member) {
  return {name, byte * 8, 128, [path, member](CmMessage& message) {
            (std::get<Message>(message).*path.*member).bytes.fill(0xff);
          }};
}

std::vector<Field> path_of_req(size_t byte, CmPath CmReq::*path) {
  return {of_path("local LID", byte, 0, 16, path, &CmPath::local_lid),
          of_path("remote LID", byte + 2, 0, 16, path, &CmPath::remote_lid),
          gid_of_path("local GID", byte + 4, path, &CmPath::local_gid),
          gid_of_path("remote GID", byte + 20, path, &CmPath::remote_gid),
          of_path("flow label", byte + 36, 0, 20, path, &CmPath::flow_label),
          of_path("packet rate", byte + 36, 26, 6, path, &CmPath::packet_rate),
          of_path("traffic class", byte + 40, 0, 8, path, &CmPath::traffic_class),
          of_path("hop limit", byte + 41, 0, 8, path, &CmPath::hop_limit),
          of_path("SL", byte + 42, 0, 4, path, &CmPath::sl),
          of_path("subnet local", byte + 42, 4, 1, path, &CmPath::subnet_local),
          of_path("local ACK timeout", byte + 43, 0, 5, path, &CmPath::local_ack_timeout)};
}

std::vector<Field> fields_of_req() {
  std::vector<Field> fields = {
      number("local communication ID", 0, 0, 32, &CmReq::local_comm_id),
      number("service ID", 8, 0, 64, &CmReq::service_id),
      number("local CA GUID", 16, 0, 64, &CmReq::local_ca_guid),
      number("local Q_Key", 28, 0, 32, &CmReq::local_qkey),
      number("local QPN", 32, 0, 24, &CmReq::local_qpn),
      number("responder resources", 35, 0, 8, &CmReq::responder_resources),
      number("local EECN", 36, 0, 24, &CmReq::local_eecn),
      number("initiator depth", 39, 0, 8, &CmReq::initiator_depth),
      number("remote EECN", 40, 0, 24, &CmReq::remote_eecn),
      number("remote CM response timeout", 43, 0, 5, &CmReq::remote_cm_response_timeout),
      number("transport service type", 43, 5, 2, &CmReq::transport),
      number("end-to-end flow control", 43, 7, 1, &CmReq::end_to_end_flow_control),
      psn("starting PSN", 44, &CmReq::starting_psn),
      number("local CM response timeout", 47, 0, 5, &CmReq::local_cm_response_timeout),
      number("retry count", 47, 5, 3, &CmReq::retry_count),
      number("partition key", 48, 0, 16, &CmReq::pkey),
      number("path packet payload MTU", 50, 0, 4, &CmReq::path_mtu),
      number("RDC exists", 50, 4, 1, &CmReq::rdc_exists),
      number("RNR retry count", 50, 5, 3, &CmReq::rnr_retry_count),
      number("max CM retries", 51, 0, 4, &CmReq::max_cm_retries),
      number("SRQ", 51, 4, 1, &CmReq::srq),
      number("extended transport type", 51, 5, 3, &CmReq::extended_transport),
      bytes("private data", 140, &CmReq::private_data)};
  for (const Field& field : path_of_req(52, &CmReq::primary)) fields.push_back(field);
  for (const Field& field : path_of_req(96, &CmReq::alternate)) fields.push_back(field);
  return fields;
}

template <class Message>
std::vector<Field> with_ids(std::vector<Field> fields) {
  fields.push_back(number("local communication ID", 0, 0, 32, &Message::local_comm_id));
  fields.push_back(number("remote communication ID", 4, 0, 32, &Message::remote_comm_id));
  return fields;
}

struct MessageFields {
  CmMessage empty;
  std::vector<Field> fields;
};

const std::vector<MessageFields>& all_fields() {
  static const std::vector<MessageFields> all = {
      {CmReq{}, fields_of_req()},
      {CmMra{}, with_ids<CmMra>({number("message MRAed", 8, 0, 2, &CmMra::message),
                                 number("service timeout", 9, 0, 5, &CmMra::service_timeout),
                                 bytes("private data", 10, &CmMra::private_data)})},
      {CmRej{}, with_ids<CmRej>({number("message rejected", 8, 0, 2, &CmRej::message),
                                 number("reject info length", 9, 0, 7, &CmRej::info_length),
                                 number("reason", 10, 0, 16, &CmRej::reason),
                                 bytes("additional reject information", 12, &CmRej::info),
                                 bytes("private data", 84, &CmRej::private_data)})},
      {CmRep{}, with_ids<CmRep>(
                    {number("local Q_Key", 8, 0, 32, &CmRep::local_qkey),
                     number("local QPN", 12, 0, 24, &CmRep::local_qpn),
                     number("local EECN", 16, 0, 24, &CmRep::local_eecn),
                     psn("starting PSN", 20, &CmRep::starting_psn),
                     number("responder resources", 24, 0, 8, &CmRep::responder_resources),
                     number("initiator depth", 25, 0, 8, &CmRep::initiator_depth),
                     number("target ACK delay", 26, 0, 5, &CmRep::target_ack_delay),
                     number("failover accepted", 26, 5, 2, &CmRep::failover_accepted),
                     number("end-to-end flow control", 26, 7, 1, &CmRep::end_to_end_flow_control),
                     number("RNR retry count", 27, 0, 3, &CmRep::rnr_retry_count),
                     number("SRQ", 27, 3, 1, &CmRep::srq),
                     number("local CA GUID", 28, 0, 64, &CmRep::local_ca_guid),
                     bytes("private data", 36, &CmRep::private_data)})},
      {CmRtu{}, with_ids<CmRtu>({bytes("private data", 8, &CmRtu::private_data)})},
      {CmDreq{}, with_ids<CmDreq>({number("remote QPN", 8, 0, 24, &CmDreq::remote_qpn),
                                   bytes("private data", 12, &CmDreq::private_data)})},
      {CmDrep{}, with_ids<CmDrep>({bytes("private data", 8, &CmDrep::private_data)})},
      {CmSidrReq{},
       {number("request ID", 0, 0, 32, &CmSidrReq::request_id),
        number("partition key", 4, 0, 16, &CmSidrReq::pkey),
        number("service ID", 8, 0, 64, &CmSidrReq::service_id),
        bytes("private data", 16, &CmSidrReq::private_data)}},
      {CmSidrRep{},
       {number("request ID", 0, 0, 32, &CmSidrRep::request_id),
        number("status", 4, 0, 8, &CmSidrRep::status),
        number("additional information length", 5, 0, 8, &CmSidrRep::info_length),
        number("QPN", 8, 0, 24, &CmSidrRep::qpn),
        number("service ID", 12, 0, 64, &CmSidrRep::service_id),
        number("Q_Key", 20, 0, 32, &CmSidrRep::qkey),
        bytes("additional information", 24, &CmSidrRep::info),
        bytes("private data", 96, &CmSidrRep::private_data)}},
      {CmLap{},
       with_ids<CmLap>(
           {number("remote QPN", 12, 0, 24, &CmLap::remote_qpn),
            number("remote CM response timeout", 15, 0, 5, &CmLap::remote_cm_response_timeout),
            of_path("local LID", 20, 0, 16, &CmLap::alternate, &CmPath::local_lid),
            of_path("remote LID", 22, 0, 16, &CmLap::alternate, &CmPath::remote_lid),
            gid_of_path("local GID", 24, &CmLap::alternate, &CmPath::local_gid),
            gid_of_path("remote GID", 40, &CmLap::alternate, &CmPath::remote_gid),
            of_path("flow label", 56, 0, 20, &CmLap::alternate, &CmPath::flow_label),
            of_path("traffic class", 59, 0, 8, &CmLap::alternate, &CmPath::traffic_class),
            of_path("hop limit", 60, 0, 8, &CmLap::alternate, &CmPath::hop_limit),
            of_path("packet rate", 61, 2, 6, &CmLap::alternate, &CmPath::packet_rate),
            of_path("SL", 62, 0, 4, &CmLap::alternate, &CmPath::sl),
            of_path("subnet local", 62, 4, 1, &CmLap::alternate, &CmPath::subnet_local),
            of_path("local ACK timeout", 63, 0, 5, &CmLap::alternate, &CmPath::local_ack_timeout),
            bytes("private data", 64, &CmLap::private_data)})},
      {CmApr{},
       with_ids<CmApr>({number("additional information length", 8, 0, 8, &CmApr::info_length),
                        number("AP status", 9, 0, 8, &CmApr::status),
                        bytes("additional information", 12, &CmApr::info),
                        bytes("private data", 84, &CmApr::private_data)})},
  };
  return all;
}

std::vector<bool> bits_of(std::span<const uint8_t> bytes) {
  std::vector<bool> bits;
  for (const uint8_t byte : bytes) {
    for (int i = 7; i >= 0; --i) bits.push_back((byte >> i & 1) != 0);
  }
  return bits;
}

TEST(CmMessages, EveryFieldHasThePositionOfTheSpecification) {
  for (const MessageFields& message : all_fields()) {
    const auto attribute = name(attribute_of(message.empty));
    std::vector<bool> covered(8 * (kMadSize - MadHeader::kSize));
    for (const Field& field : message.fields) {
      CmMad mad{.transaction_id = 0, .message = message.empty};
      field.fill(mad.message);
      const ByteVector bytes = emitted_mad(mad);
      const auto found = bits_of(std::span(bytes).subspan(MadHeader::kSize));
      for (size_t i = 0; i < found.size(); ++i) {
        const bool inside = i >= field.offset && i < field.offset + field.width;
        EXPECT_EQ(found[i], inside) << attribute << " " << field.name << ", bit " << i;
        if (inside) {
          EXPECT_FALSE(covered[i]) << attribute << " " << field.name << " overlaps";
          covered[i] = true;
        }
      }
    }
  }
}

// Reserved bits are ignored on receipt and zero when sent (12.6): a MAD whose bits are all ones is
// parsed and emitted again, with ones in the fields and zeros elsewhere. Fields that may not be all
// ones stay zero.
TEST(CmMessages, ReservedBitsAreIgnoredAndSentAsZero) {
  for (const MessageFields& message : all_fields()) {
    const CmMad empty{.transaction_id = 7, .message = message.empty};
    ByteVector bytes = emitted_mad(empty);
    auto used = std::vector<bool>(8 * kMadSize);
    for (const Field& field : message.fields) {
      for (size_t i = 0; i < field.width; ++i) {
        used[8 * MadHeader::kSize + field.offset + i] = true;
      }
    }
    for (size_t i = 8 * MadHeader::kSize; i < used.size(); ++i) {
      if (!used[i]) bytes[i / 8] |= static_cast<uint8_t>(0x80 >> i % 8);
    }
    bytes[4] = 0xff;   // status
    bytes[18] = 0xff;  // reserved
    bytes[23] = 0xff;  // attribute modifier
    const auto parsed = parse_cm_mad(bytes);
    ASSERT_TRUE(parsed) << name(attribute_of(message.empty));
    EXPECT_EQ(*parsed, empty) << to_string(*parsed);
  }
}

TEST(CmMessages, AnyValuesAreEmittedAndParsedUnchanged) {
  uint32_t state = 1;
  const auto next = [&] {
    return static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  };
  for (const MessageFields& message : all_fields()) {
    for (int round = 0; round < 100; ++round) {
      ByteVector bytes = emitted_mad({.transaction_id = 0, .message = message.empty});
      for (size_t i = MadHeader::kSize; i < kMadSize; ++i) bytes[i] = next();
      for (size_t i = 8; i < 16; ++i) bytes[i] = next();  // transaction ID
      const auto parsed = parse_cm_mad(bytes);
      if (!parsed) continue;
      const ByteVector emitted_again = emitted_mad(*parsed);
      const auto again = parse_cm_mad(emitted_again);
      ASSERT_TRUE(again);
      EXPECT_EQ(*again, *parsed) << to_string(*parsed);
    }
  }
}

// ---- Refusals ----

TEST(CmMessages, EveryWrongLengthIsRefused) {
  for (const MessageFields& message : all_fields()) {
    ByteVector bytes = emitted_mad({.transaction_id = 0, .message = message.empty});
    bytes.resize(kMadSize + 300);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto parsed = parse_cm_mad(std::span(bytes).first(size));
      if (size == kMadSize) {
        EXPECT_TRUE(parsed);
      } else {
        ASSERT_FALSE(parsed);
        EXPECT_EQ(parsed.error(), size < kMadSize ? MadError::kTruncated : MadError::kTooLong);
      }
    }
  }
}

TEST(CmMessages, HeadersOfOtherMadsAreRefused) {
  const auto refusal = [](size_t at, uint8_t value) {
    ByteVector bytes = emitted_mad({.transaction_id = 0, .message = CmRtu{}});
    bytes[at] = value;
    const auto parsed = parse_cm_mad(bytes);
    EXPECT_FALSE(parsed);
    return parsed.error();
  };
  EXPECT_EQ(refusal(0, 0), MadError::kBadBaseVersion);
  EXPECT_EQ(refusal(0, 0x80), MadError::kBadBaseVersion);
  EXPECT_EQ(refusal(1, 0x04), MadError::kNotCm);
  EXPECT_EQ(refusal(2, 1), MadError::kBadClassVersion);
  EXPECT_EQ(refusal(2, 3), MadError::kBadClassVersion);
  for (const int method : {0x00, 0x01, 0x02, 0x05, 0x81, 0x83}) {
    EXPECT_EQ(refusal(3, static_cast<uint8_t>(method)), MadError::kBadMethod);
  }
  for (const int attribute : {0x00, 0x01, 0x0f, 0x1b, 0xff}) {
    EXPECT_EQ(refusal(17, static_cast<uint8_t>(attribute)), MadError::kUnknownAttribute);
  }
  EXPECT_EQ(refusal(16, 1), MadError::kUnknownAttribute);
}

TEST(CmMessages, ReservedValuesAndImpossibleLengthsAreRefused) {
  const auto result = [](const CmMessage& message, size_t at, uint8_t value) {
    ByteVector bytes = emitted_mad({.transaction_id = 0, .message = message});
    bytes[MadHeader::kSize + at] = value;
    const auto parsed = parse_cm_mad(bytes);
    return parsed ? "parsed" : name(parsed.error());
  };
  EXPECT_EQ(result(CmMra{}, 8, 0x80), "parsed");
  EXPECT_EQ(result(CmMra{}, 8, 0xc0), "mad_reserved_value");
  EXPECT_EQ(result(CmRej{}, 8, 0x80), "parsed");
  EXPECT_EQ(result(CmRej{}, 8, 0xc0), "mad_reserved_value");
  EXPECT_EQ(result(CmRej{}, 9, 72 << 1), "parsed");
  EXPECT_EQ(result(CmRej{}, 9, 73 << 1), "mad_bad_length");
  EXPECT_EQ(result(CmRep{}, 26, 0x04), "parsed");
  EXPECT_EQ(result(CmRep{}, 26, 0x06), "mad_reserved_value");
  EXPECT_EQ(result(CmSidrRep{}, 5, 72), "parsed");
  EXPECT_EQ(result(CmSidrRep{}, 5, 73), "mad_bad_length");
  EXPECT_EQ(result(CmApr{}, 8, 72), "parsed");
  EXPECT_EQ(result(CmApr{}, 8, 73), "mad_bad_length");
}

TEST(CmMessages, EveryRefusalHasAName) {
  for (size_t i = 0; i < kMadErrorCount; ++i) {
    EXPECT_EQ(name(static_cast<MadError>(i)).substr(0, 4), "mad_");
  }
}

// ---- The MAD header ----

TEST(Mad, FixedBytesBothWays) {
  const MadHeader header{.base_version = 1,
                         .mgmt_class = 0x07,
                         .class_version = 2,
                         .method = 0x81,
                         .status = 0x000c,
                         .class_specific = 0x0102,
                         .transaction_id = 0x0123456789abcdef,
                         .attribute_id = 0x0001,
                         .attribute_modifier = 0xa0b0c0d0};
  const ByteVector bytes = from_hex("01070281 000c0102 01234567 89abcdef 00010000 a0b0c0d0");
  ByteVector buffer(MadHeader::kSize, kDirt);
  emit(header, std::span(buffer).first<MadHeader::kSize>());
  EXPECT_EQ(buffer, bytes);
  EXPECT_EQ(parse_mad_header(std::span<const uint8_t>(bytes).first<MadHeader::kSize>()), header);
}

// ---- The IP addressing annex ----

TEST(IpCm, FixedBytesBothWays) {
  const struct {
    IpCmHeader header;
    const char* hex;
  } cases[] = {
      {{.source_port = 0x1234,
        .source = IpAddress::from_v4(10, 7, 0, 1),
        .destination = IpAddress::from_v4(10, 7, 0, 2)},
       "00 40 1234 00000000 00000000 00000000 0a070001 00000000 00000000 00000000 0a070002"},
      {{.source_port = 1,
        .source = *parse_ip_address("2001:db8::1"),
        .destination = *parse_ip_address("fe80::2")},
       "00 60 0001 20010db8 00000000 00000000 00000001 fe800000 00000000 00000000 00000002"},
  };
  for (const auto& test : cases) {
    const ByteVector bytes = from_hex(test.hex);
    ByteVector buffer(IpCmHeader::kSize, kDirt);
    emit(test.header, std::span(buffer).first<IpCmHeader::kSize>());
    EXPECT_EQ(buffer, bytes);
    const auto parsed =
        parse_ip_cm_header(std::span<const uint8_t>(bytes).first<IpCmHeader::kSize>());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, test.header);
  }
}

TEST(IpCm, OtherVersionsAreRefused) {
  const auto parsed = [](uint8_t cm_version, uint8_t ip_version) {
    std::array<uint8_t, IpCmHeader::kSize> bytes{};
    bytes[0] = cm_version;
    bytes[1] = ip_version;
    return parse_ip_cm_header(bytes);
  };
  EXPECT_TRUE(parsed(0x00, 0x40));
  EXPECT_TRUE(parsed(0x0f, 0x4f));  // a minor version, and reserved bits that are set
  EXPECT_EQ(parsed(0x10, 0x40).error(), IpCmError::kBadMajorVersion);
  for (const int version : {0x00, 0x10, 0x50, 0x70, 0xf0}) {
    EXPECT_EQ(parsed(0, static_cast<uint8_t>(version)).error(), IpCmError::kBadIpVersion);
  }
}

TEST(IpCm, TheServiceIdHasProtocolAndPort) {
  EXPECT_EQ(ip_cm_service_id(IpCmProtocol::kTcp, 0x1c06), 0x0000000001061c06u);
  EXPECT_EQ(ip_cm_service_id(IpCmProtocol::kUdp, 0xffff), 0x000000000111ffffu);
}

// ---- Text ----

TEST(CmPrint, MessagesAreALineOfText) {
  EXPECT_EQ(to_string(CmMad{.transaction_id = 0x4a2,
                            .message = CmRej{.local_comm_id = 0x10,
                                             .remote_comm_id = 0x20,
                                             .message = CmRejected::kReq,
                                             .reason = 8}}),
            "CM REJ id=0x10 remote_id=0x20 message=0 reason=8 invalid_service_id tid=0x4a2");
  EXPECT_EQ(to_string(CmMad{.transaction_id = 1, .message = CmSidrReq{.request_id = 5}}),
            "CM SIDR_REQ id=0x5 service=0x0 tid=0x1");
  EXPECT_EQ(reject_reason_name(33), "invalid_alternate_flow_label");
  EXPECT_EQ(reject_reason_name(34), "unknown");
  EXPECT_EQ(reject_reason_name(0xffff), "unknown");
}

TEST(CmPrint, APacketForQueuePair1ShowsItsMad) {
  Packet packet;
  packet.bth.opcode = Opcode::kUdSendOnly;
  packet.bth.dest_qpn = kGsiQpn;
  packet.deth = {.qkey = kGsiQkey, .src_qpn = kGsiQpn};
  ByteVector mad = emitted_mad({.transaction_id = 3, .message = CmRtu{.local_comm_id = 9}});
  packet.payload = mad;
  EXPECT_NE(to_string(packet).find(" len=256 CM RTU id=0x9 remote_id=0x0 tid=0x3"),
            std::string::npos)
      << to_string(packet);
  mad[1] = 0x04;
  EXPECT_NE(to_string(packet).find(
                " MAD class=0x4 version=2 method=0x3 attribute=0x14 status=0x0 tid=0x3"),
            std::string::npos)
      << to_string(packet);
}

}  // namespace
}  // namespace rocemu::wire
