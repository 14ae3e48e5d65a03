#include "emulator/scenario/effect_readers.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/engine/config.h"
#include "emulator/scenario/rule_keys.h"
#include "wire/aeth.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Corruption;
using engine::faults::FieldChange;
using engine::faults::GidChange;
using engine::faults::MadeUpFrame;
using engine::faults::PortChange;
using engine::faults::Rejection;
using engine::faults::Where;

bool is_known_errno(uint64_t number) {
  return std::ranges::any_of(errno_names().names,
                             [&](const Name& name) { return name.value == number; });
}

/// Reads an AETH syndrome: "ack", the name of a NAK, or a number.
uint8_t read_syndrome(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "a syndrome");
  if (normalized(word) == "ACK") return wire::ack_syndrome();
  if (const auto nak = kNakNames.find(word)) {
    return wire::nak_syndrome(static_cast<wire::NakCode>(*nak));
  }
  const bool is_number = !word.empty() && word[0] >= '0' && word[0] <= '9';
  if (is_number) return static_cast<uint8_t>(in.reader.number(value, 0, 255));
  const std::vector<std::string_view> known = kNakNames.texts();
  in.reader.fail(value, fmt::format("expected ACK, a NAK ({}) or a number up to 255, found {}{}",
                                    listing(known), NodeReader::found(value),
                                    NodeReader::suggestion(word, known)));
}

/// Returns the largest value of the header field.
uint64_t most_in(FieldChange::Field field) {
  using Field = FieldChange::Field;
  switch (field) {
    case Field::kSolicited:
    case Field::kMigReq:
    case Field::kFecn:
    case Field::kBecn:
    case Field::kAckReq:
      return 1;
    case Field::kTver:
      return 0xf;
    case Field::kOpcode:
    case Field::kSyndrome:
    case Field::kTrafficClass:
    case Field::kHopLimit:
      return 0xff;
    case Field::kPkey:
    case Field::kUdpSourcePort:
      return 0xffff;
    case Field::kDestQp:
    case Field::kPsn:
    case Field::kMsn:
    case Field::kSrcQp:
    case Field::kSrq:
      return kMax24;
    case Field::kRkey:
    case Field::kDmaLength:
    case Field::kQkey:
    case Field::kImmediate:
    case Field::kInvalidateRkey:
      return UINT32_MAX;
    case Field::kVa:
    case Field::kSwapAdd:
    case Field::kCompare:
    case Field::kOriginal:
      return kAny;
  }
  return kAny;
}

FieldChange read_change(Reading in, const Node& key, const Node& value) {
  using Field = FieldChange::Field;
  FieldChange change{.field = static_cast<Field>(in.reader.name(key, kFieldNames))};
  const std::string word = in.reader.text(value, "a number, or a change such as +1 or -1");
  if (change.field == Field::kOpcode) {
    if (const auto opcode = find_opcode(word)) {
      change.value = *opcode;
      return change;
    }
    if (normalized(word) == "SEND")
      in.reader.fail(value, "SEND is a group of opcodes; name one of them, such as SEND_ONLY");
  }
  if (change.field == Field::kSyndrome) {
    change.value = read_syndrome(in, value);
    return change;
  }
  const uint64_t most = most_in(change.field);
  const std::string lower = normalized(word);
  if (most == 1 && (lower == "TRUE" || lower == "FALSE")) {
    change.value = lower == "TRUE" ? 1 : 0;
    return change;
  }
  change.relative = word.starts_with('+') || word.starts_with('-');
  const auto amount =
      NodeReader::parse_number(std::string_view(word).substr(change.relative ? 1 : 0));
  if (!amount || *amount > most) {
    in.reader.fail(
        value,
        fmt::format("{} must be a number from 0 to {}, or a change such as +1 or -1; found {}",
                    key.text, most, NodeReader::found(value)));
  }
  change.value = word.starts_with('-') ? 0 - *amount : *amount;
  return change;
}

MadeUpFrame read_frame(Reading in, const Node& node) {
  if (!node.is_mapping()) {
    in.reader.fail(node, fmt::format("expected a frame such as {{to: sender, opcode: ACK, psn: "
                                     "+100}}, found {}",
                                     NodeReader::found(node)));
  }
  MadeUpFrame frame;
  const auto read = [&](const Node& key, const Node& field) {
    const std::string word = in.reader.text(key, "a header field");
    if (word == "to") {
      const std::string to = in.reader.text(field, "sender or receiver");
      if (to != "sender" && to != "receiver") {
        in.reader.fail(
            field, fmt::format("expected sender or receiver, found {}", NodeReader::found(field)));
      }
      frame.to_sender = to == "sender";
    } else if (word == "payload") {
      frame.payload = static_cast<uint32_t>(in.reader.number(field, 0, kMaxPayload));
    } else {
      frame.changes.push_back(read_change(in, key, field));
    }
  };
  for (const Entry& entry : node.entries) {
    in.reader.attempt([&] { read(entry.key, entry.value); });
  }
  return frame;
}

/// Reads "status": 0 or a negative errno. For REJECTED it is the reason of the REJ
/// (rdma_get_cm_event(3)), and for UNREACHABLE it may be the status of the peer's SIDR_REP.
void read_cm_status(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "a status");
  const bool negative = word.starts_with('-');
  const std::string amount_text = negative ? word.substr(1) : word;
  if (const auto error = errno_names().find(amount_text)) {
    in.rule.effects.cm_status = -static_cast<int32_t>(*error);
    return;
  }
  if (const auto reason = kRejectReasonNames.find(word)) {
    in.rule.effects.cm_status = static_cast<int32_t>(*reason);
    return;
  }
  const auto amount = NodeReader::parse_number(amount_text);
  const bool is_errno = amount && (*amount == 0 || is_known_errno(*amount));
  if (!amount || *amount > 0xffff || (negative && !is_errno)) {
    in.reader.fail(
        value,
        fmt::format("expected 0, an errno such as -ETIMEDOUT or -110, or a reject reason, such as "
                    "CONSUMER or 28; found {}",
                    NodeReader::found(value)));
  }
  in.rule.effects.cm_status = static_cast<int32_t>(negative ? -int64_t(*amount) : int64_t(*amount));
}

}  // namespace

void read_rewrite(Reading in, const Node& value) {
  if (!value.is_mapping() || value.entries.empty()) {
    in.reader.fail(value, fmt::format("expected header fields, such as {{psn: +1}}, found {}",
                                      NodeReader::found(value)));
  }
  for (const auto& [key, field] : value.entries) {
    in.reader.attempt([&, &key = key, &field = field] {
      in.rule.effects.rewrite.push_back(read_change(in, key, field));
    });
  }
}

void read_inject(Reading in, const Node& value) {
  for (const Node& item : in.reader.items(value, "a frame")) {
    in.reader.attempt([&] { in.rule.effects.inject.push_back(read_frame(in, item)); });
  }
}

void read_corrupt(Reading in, const Node& value) {
  Corruption corruption;
  if (value.is_scalar() && (value.text == "icrc" || value.text == "true")) {
    corruption.icrc = true;
  } else if (value.is_mapping()) {
    for (const auto& [key, what] : value.entries) {
      const std::string word = in.reader.text(key, "bits, random_bits or icrc");
      if (word == "bits") {
        for (const Node& bit : in.reader.items(what, "the number of a bit")) {
          corruption.bits.push_back(
              static_cast<uint32_t>(in.reader.number(bit, 0, uint64_t{8} * 4400)));
        }
      } else if (word == "random_bits") {
        corruption.random_bits = static_cast<uint32_t>(in.reader.number(what, 1, 1024));
      } else if (word == "icrc") {
        corruption.icrc = in.reader.boolean(what);
      } else {
        in.reader.fail(key, fmt::format("expected bits, random_bits or icrc, found {}",
                                        NodeReader::found(key)));
      }
    }
  } else {
    in.reader.fail(value, fmt::format("expected icrc, {{bits: [...]}} or {{random_bits: N}}, "
                                      "found {}",
                                      NodeReader::found(value)));
  }
  in.rule.effects.corrupt = corruption;
}

void read_reject(Reading in, const Node& value) {
  Rejection rejection;
  const auto reason_of = [&](const Node& node) {
    const std::string word = in.reader.text(node, "a reject reason");
    const bool is_number = !word.empty() && word[0] >= '0' && word[0] <= '9';
    return static_cast<uint16_t>(is_number ? in.reader.number(node, 0, 0xffff)
                                           : in.reader.name(node, kRejectReasonNames));
  };
  if (!value.is_mapping()) {
    rejection.reason = reason_of(value);
  } else {
    for (const auto& [key, what] : value.entries) {
      const std::string word = in.reader.text(key, "reason or private_data");
      if (word == "reason") {
        rejection.reason = reason_of(what);
      } else if (word == "private_data") {
        rejection.private_data = in.reader.bytes(what, 148);
      } else {
        in.reader.fail(
            key, fmt::format("expected reason or private_data, found {}", NodeReader::found(key)));
      }
    }
  }
  in.rule.effects.reject = std::move(rejection);
}

void read_rnr(Reading in, const Node& value) {
  if (value.is_scalar() && value.text == "true") {
    in.rule.effects.rnr = true;
    return;
  }
  const auto code = static_cast<uint8_t>(in.reader.number(value, 0, 31));
  in.rule.effects.answer = wire::rnr_nak_syndrome(code);
}

void read_nak(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "a NAK");
  const bool is_number = !word.empty() && word[0] >= '0' && word[0] <= '9';
  const uint32_t code = is_number ? static_cast<uint32_t>(in.reader.number(value, 0, 31))
                                  : in.reader.name(value, kNakNames);
  in.rule.effects.answer = wire::nak_syndrome(static_cast<wire::NakCode>(code));
}

void read_status(Reading in, const Node& value) {
  if (in.rule.where == Where::kCmEvent || in.rule.where == Where::kNow) {
    return read_cm_status(in, value);
  }
  const auto status = static_cast<abi::WcStatus>(in.reader.name(value, kWcStatusNames));
  if (status == abi::WcStatus::kSuccess) {
    in.reader.fail(value, "a rule can only make work requests fail; name an error status");
  }
  in.rule.effects.status = status;
}

void read_event(Reading in, const Node& value) {
  if (in.rule.where == Where::kEvent) {
    in.rule.effects.event = static_cast<abi::EventType>(in.reader.name(value, kEventNames));
  } else {
    in.rule.effects.cm_event =
        static_cast<abi::ucma::EventType>(in.reader.name(value, kCmEventNames));
  }
}

void read_errno(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "an errno");
  const auto number = NodeReader::parse_number(word);
  if (number && !is_known_errno(*number)) {
    in.reader.fail(
        value,
        fmt::format("Linux has no errno {}; the first is 1 (EPERM), the last 133 (EHWPOISON)",
                    word));
  }
  in.rule.effects.error = static_cast<int>(number ? *number : in.reader.name(value, errno_names()));
}

void read_port(Reading in, const Node& value) {
  if (value.is_mapping()) {
    const Node* down = value.find("down");
    if (value.entries.size() != 1 || down == nullptr) {
      in.reader.fail(
          value, "expected up, down or {down: TIME}, which brings the port up again after TIME");
    }
    in.rule.effects.port = PortChange{false, in.reader.duration(*down)};
    return;
  }
  const std::string word = in.reader.text(value, "up, down or {down: TIME}");
  if (word != "up" && word != "down") {
    in.reader.fail(value, fmt::format("expected up, down or {{down: TIME}}, found {}",
                                      NodeReader::found(value)));
  }
  in.rule.effects.port = PortChange{word == "up", {}};
}

void read_gid(Reading in, const Node& value) {
  const Node* index = value.find("index");
  const Node* address = value.find("address");
  if (index == nullptr || address == nullptr || value.entries.size() != 2) {
    in.reader.fail(value, fmt::format("expected {{index: N, address: IP}}, found {}",
                                      NodeReader::found(value)));
  }
  const auto number =
      static_cast<uint32_t>(in.reader.number(*index, 0, engine::kGidTableLength - 1));
  const auto ip = wire::parse_ip_address(in.reader.text(*address, "an IP address"));
  if (!ip) {
    in.reader.fail(*address, fmt::format("expected an IPv4 or IPv6 address, found {}",
                                         NodeReader::found(*address)));
  }
  in.rule.effects.gid = GidChange{number, *ip};
}

}  // namespace rocemu::scenario
