// Reads and checks the effects of rules for a simulated network.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/scenario/effect_readers.h"

namespace rocemu::scenario {
namespace {

using engine::EcnChange;
using engine::LinkFlap;
using engine::NetworkChange;
using engine::NetworkElement;
using engine::PauseStorm;
using engine::faults::Where;

struct Member {
  std::string_view key;
  bool is_required;
  void (*read)(const NodeReader& reader, const Node& value, NetworkChange& change);
};

/// Reads a mapping whose keys must be in `fields`. `shape` describes the mapping in messages.
void read_members(Reading in, const Node& value, std::string_view shape,
                  std::span<const Member> fields) {
  if (!value.is_mapping()) {
    in.reader.fail(value, fmt::format("expected {}, found {}", shape, NodeReader::found(value)));
  }
  for (const Entry& entry : value.entries) {
    const auto field = std::ranges::find(fields, entry.key.text, &Member::key);
    if (field == fields.end()) {
      in.reader.fail(entry.key, fmt::format("expected {}, found the key {}", shape,
                                            NodeReader::found(entry.key)));
    }
    field->read(in.reader, entry.value, in.rule.effects.network);
  }
  for (const Member& field : fields) {
    if (field.is_required && value.find(field.key) == nullptr)
      in.reader.fail(value, fmt::format("'{}' is missing: {}", field.key, shape));
  }
}

engine::Duration positive(const NodeReader& reader, const Node& value) {
  const engine::Duration time = reader.duration(value);
  if (time == engine::Duration{}) reader.fail(value, "the time is 0; it must be at least 1ns");
  return time;
}

constexpr Member kFlapMembers[] = {
    {"down", true,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.flap->down = positive(reader, v);
     }},
    {"up", false,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.flap->up = positive(reader, v);
     }},
    {"times", false,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.flap->times = static_cast<uint32_t>(reader.number(v, 1, kMostFlaps));
     }},
};

constexpr Member kEcnMembers[] = {
    {"kmin", true,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.ecn->kmin_bytes = reader.size(v);
     }},
    {"kmax", true,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.ecn->kmax_bytes = reader.size(v);
     }},
    {"pmax", false,
     [](const NodeReader& reader, const Node& v, NetworkChange& change) {
       change.ecn->pmax = reader.probability(v);
     }},
};

/// Fails if the rule has the effect, but the part of the network that the rule names is not of one
/// of these kinds.
void check_kind(Reading in, const Node& node, bool has_effect, std::string_view effect,
                std::initializer_list<NetworkElement::Kind> kinds, std::string_view example) {
  if (!has_effect || std::ranges::find(kinds, in.rule.which.network->kind) != kinds.end()) return;
  in.reader.fail(node, fmt::format("'{}' needs {}", effect, example));
}

}  // namespace

void read_bandwidth(Reading in, const Node& value) {
  const uint64_t bits = in.reader.bandwidth(value);
  if (in.rule.where == Where::kNetwork) {
    in.rule.effects.network.bits_per_second = bits;
  } else {
    in.rule.effects.bits_per_second = bits;
  }
}

void read_down(Reading in, const Node& value) {
  if (!in.reader.boolean(value)) in.reader.fail(value, "leave it out instead");
  in.rule.effects.network.is_down = true;
}

void read_flap(Reading in, const Node& value) {
  in.rule.effects.network.flap = LinkFlap{};
  read_members(in, value, "{down: TIME, up: TIME, times: N}", kFlapMembers);
  const LinkFlap& flap = *in.rule.effects.network.flap;
  if (flap.times > 1 && flap.up == engine::Duration{})
    in.reader.fail(value,
                   "a link that goes down several times needs 'up', the time between two outages");
}

void read_ecn(Reading in, const Node& value) {
  EcnChange& ecn = in.rule.effects.network.ecn.emplace();
  if (value.is_scalar() && value.text == "off") {
    ecn.is_off = true;
    return;
  }
  read_members(in, value, "off or {kmin: SIZE, kmax: SIZE, pmax: PROBABILITY}", kEcnMembers);
  if (ecn.kmin_bytes > ecn.kmax_bytes) in.reader.fail(value, "kmin must not be above kmax");
}

void read_pause_storm(Reading in, const Node& value) {
  PauseStorm& storm = in.rule.effects.network.pause_storm.emplace();
  if (value.is_scalar() && value.text == "true") return;
  storm.priority = static_cast<uint8_t>(in.reader.number(value, 0, 7));
}

void check_network_rule(Reading in, const Node& node) {
  using Kind = NetworkElement::Kind;
  if (in.rule.where != Where::kNetwork) return;
  const NetworkChange& change = in.rule.effects.network;
  if (!in.rule.which.network) {
    in.reader.fail(node,
                   "a rule with on: network must name a part of the network: link: h3-s1, port: "
                   "s1:3, switch: s1 or host: h3");
  }
  constexpr std::string_view kLink = "a link: link: h3-s1, or port: s1:3 for the link at that port";
  check_kind(in, node, change.is_down, "down", {Kind::kLink, Kind::kPort}, kLink);
  check_kind(in, node, change.flap.has_value(), "flap", {Kind::kLink, Kind::kPort}, kLink);
  check_kind(in, node, change.bits_per_second != 0, "bandwidth", {Kind::kLink, Kind::kPort}, kLink);
  check_kind(in, node, change.corruption > 0, "corruption", {Kind::kLink, Kind::kPort}, kLink);
  check_kind(in, node, change.outage.has_value(), "reboot", {Kind::kSwitch},
             "a switch: switch: s1");
  check_kind(in, node, change.ecn.has_value(), "ecn", {Kind::kSwitch}, "a switch: switch: s1");
  check_kind(in, node, change.pause_storm.has_value(), "pause_storm", {Kind::kHost},
             "a host: host: h3");
  if (change.flap && change.is_down) in.reader.fail(node, "give either down or flap, not both");
  if (in.rule.when.lifetime && (change.flap || change.outage)) {
    in.reader.fail(
        node, fmt::format("'for' cannot be combined with {}, which already contains a duration",
                          change.flap ? "flap" : "reboot"));
  }
}

}  // namespace rocemu::scenario
