#include "emulator/scenario/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "emulator/abi/control.h"
#include "emulator/abi/linux_names.h"
#include "emulator/engine/config.h"
#include "emulator/scenario/effect_readers.h"
#include "emulator/scenario/effect_words.h"
#include "emulator/scenario/schema_values.h"
#include "wire/eth_headers.h"
#include "wire/print.h"

namespace rocemu::scenario {
namespace {

using engine::Duration;
using engine::faults::Effects;
using engine::faults::Where;
using json_schema::Json;

constexpr Places kFrame = kOnFrames, kRequest = at(Where::kRequest), kLink = at(Where::kLink),
                 kCm = at(Where::kCm), kCompletion = at(Where::kCompletion),
                 kWorkRequest = at(Where::kWorkRequest), kEvent = at(Where::kEvent),
                 kCmEvent = at(Where::kCmEvent), kVerb = at(Where::kVerb), kNow = at(Where::kNow),
                 kNetwork = at(Where::kNetwork);
constexpr bool kAlone = true, kWithValue = false;

/// Reads a flag: `drop: true`, or `drop` without a value. Refuses `drop: false`.
template <bool Effects::*kFlag>
void read_flag_of(Reading in, const Node& value) {
  if (!in.reader.boolean(value)) in.reader.fail(value, "leave it out instead");
  in.rule.effects.*kFlag = true;
}

template <uint32_t Effects::*kNumber, uint32_t kLeast, uint32_t kMost>
void read_number_of(Reading in, const Node& value) {
  in.rule.effects.*kNumber = static_cast<uint32_t>(in.reader.number(value, kLeast, kMost));
}

/// Reads a number, or `true`, which means 1.
template <uint32_t Effects::*kNumber, uint32_t kMost>
void read_count_of(Reading in, const Node& value) {
  if (value.is_scalar() && value.text == "true") {
    in.rule.effects.*kNumber = 1;
  } else {
    read_number_of<kNumber, 1, kMost>(in, value);
  }
}

template <Duration Effects::*kTime>
void read_time_of(Reading in, const Node& value) {
  in.rule.effects.*kTime = read_time(in, value);
}

/// Returns whether this member of the rule's effects is set.
template <auto kMember>
bool has(const Effects& effects) {
  return effects.*kMember != std::remove_cvref_t<decltype(effects.*kMember)>{};
}
template <auto kMember>
bool has_value(const Effects& effects) {
  return (effects.*kMember).has_value();
}
template <auto kMember>
bool has_items(const Effects& effects) {
  return !(effects.*kMember).empty();
}

Json flag_value(Where) {
  return json_schema::flag();
}
Json time_value(Where) {
  return json_schema::time();
}

template <uint64_t kLeast, uint64_t kMost>
Json number_value(Where) {
  return json_schema::number(kLeast, kMost);
}
template <uint64_t kLeast, uint64_t kMost>
Json flag_or_number(Where) {
  return json_schema::any_of({json_schema::flag(), json_schema::number(kLeast, kMost)});
}

std::string answer_text(uint8_t syndrome) {
  std::string text = wire::to_string(wire::Aeth{syndrome, 0});
  return text.substr(0, text.find(" msn"));
}

std::string status_text(const Effects& effects) {
  if (effects.status) return fmt::format("fails it with {}", abi::name_of(*effects.status));
  return fmt::format("gives it status {}", *effects.cm_status);
}

std::string event_text(const Effects& effects) {
  return fmt::format("makes it {}", effects.event ? abi::name_of(*effects.event)
                                                  : abi::name_of(*effects.cm_event));
}

std::string errno_text(const Effects& effects) {
  const char* const name = abi::errno_name(effects.error);
  return fmt::format("fails it with {}", name != nullptr ? name : "an errno");
}

Json corrupt_value(Where) {
  return json_schema::any_of(
      {{{"enum", {"icrc", true}}},
       json_schema::object(
           {{"bits", json_schema::one_or_list(json_schema::number(0, uint64_t{8} * 4400))},
            {"random_bits", json_schema::number(1, 1024)},
            {"icrc", {{"type", "boolean"}}}})});
}

Json reject_value(Where) {
  const Json reason = json_schema::ref("reject_reason");
  return json_schema::any_of(
      {reason, json_schema::object({{"reason", reason}, {"private_data", {{"type", "string"}}}})});
}

Json status_value(Where where) {
  const bool of_cm = where == Where::kCmEvent || where == Where::kNow;
  return json_schema::ref(of_cm ? "cm_status" : "wc_status");
}

Json gid_value(Where) {
  return json_schema::object({{"index", json_schema::number(0, engine::kGidTableLength - 1)},
                              {"address", json_schema::text()}},
                             {"index", "address"});
}

Json flap_value(Where) {
  return json_schema::object({{"down", json_schema::time()},
                              {"up", json_schema::time()},
                              {"times", json_schema::number(1, kMostFlaps)}},
                             {"down"});
}

Json ecn_value(Where) {
  return json_schema::any_of({{{"enum", {"off"}}},
                              json_schema::object({{"kmin", json_schema::size()},
                                                   {"kmax", json_schema::size()},
                                                   {"pmax", json_schema::probability()}},
                                                  {"kmin", "kmax"})});
}

// Each row has: the key, its places and its reader; the manner; whether a rule has the effect; its
// words in a log; whether the key may have no value; and the schema of its value.
constexpr Effect kEffects[] = {
    {{"drop", kOnWire | kCompletion | kEvent | kCmEvent, read_flag_of<&Effects::drop>},
     Manner::kDrops,
     has<&Effects::drop>,
     [](const Effects&) -> std::string { return "drops"; },
     kAlone,
     flag_value},
    {{"delay", kFrame | kCompletion, read_time_of<&Effects::delay>},
     Manner::kMoves,
     has<&Effects::delay>,
     [](const Effects& e) { return "delays by " + in_words(e.delay); },
     kWithValue,
     time_value},
    {{"jitter", kOnWire | kCompletion, read_time_of<&Effects::jitter>},
     Manner::kMoves,
     has<&Effects::jitter>,
     [](const Effects& e) { return "delays by up to " + in_words(e.jitter); },
     kWithValue,
     time_value},
    {{"log", kEverywhere & ~kLink & ~kNow, read_flag_of<&Effects::log>},
     Manner::kBeside,
     has<&Effects::log>,
     [](const Effects&) -> std::string { return "sees"; },
     kAlone,
     flag_value},
    {{"duplicate", kFrame, read_count_of<&Effects::duplicate, 1000>},
     Manner::kMoves,
     has<&Effects::duplicate>,
     [](const Effects& e) {
       return fmt::format("sends {} more cop{}", e.duplicate, e.duplicate == 1 ? "y" : "ies");
     },
     kAlone,
     flag_or_number<1, 1000>},
    {{"reorder", kFrame, read_count_of<&Effects::reorder, 100000>},
     Manner::kMoves,
     has<&Effects::reorder>,
     [](const Effects& e) { return fmt::format("lets {} overtake it", e.reorder); },
     kAlone,
     flag_or_number<1, 100000>},
    {{"corrupt", kFrame, read_corrupt},
     Manner::kChanges,
     has_value<&Effects::corrupt>,
     [](const Effects&) -> std::string { return "corrupts"; },
     kAlone,
     corrupt_value},
    {{"rewrite", kFrame, read_rewrite},
     Manner::kChanges,
     has_items<&Effects::rewrite>,
     [](const Effects&) -> std::string { return "rewrites"; },
     kWithValue,
     [](Where) { return json_schema::ref("rewrite"); }},
    {{"inject", kFrame, read_inject},
     Manner::kBeside,
     has_items<&Effects::inject>,
     [](const Effects& e) {
       return fmt::format("injects {} other frame{}", e.inject.size(),
                          e.inject.size() == 1 ? "" : "s");
     },
     kWithValue,
     [](Where) { return json_schema::one_or_list(json_schema::ref("frame")); }},
    {{"reject", kCm, read_reject},
     Manner::kRejects,
     has_value<&Effects::reject>,
     [](const Effects&) -> std::string { return "rejects"; },
     kWithValue,
     reject_value},
    {{"latency", kLink,
      [](Reading in, const Node& v) { in.rule.effects.latency = in.reader.duration(v); }},
     Manner::kChanges,
     has<&Effects::latency>,
     [](const Effects& e) { return "takes " + in_words(e.latency) + " for it"; },
     kWithValue,
     time_value},
    {{"bandwidth", kLink | kNetwork, read_bandwidth},
     Manner::kChanges,
     [](const Effects& e) { return e.bits_per_second != 0 || e.network.bits_per_second != 0; },
     [](const Effects&) -> std::string { return "slows down"; },
     kWithValue,
     [](Where) { return json_schema::bandwidth(); }},
    {{"loss", kLink,
      [](Reading in, const Node& v) { in.rule.effects.loss = in.reader.probability(v); }},
     Manner::kBeside,
     [](const Effects& e) { return e.loss > 0; },
     [](const Effects&) -> std::string { return "may lose"; },
     kWithValue,
     [](Where) { return json_schema::probability(); }},
    {{"partition", kLink, read_flag_of<&Effects::drop>},
     Manner::kDrops,
     has<&Effects::drop>,
     nullptr,
     kAlone,
     flag_value},
    {{"rnr", kRequest, read_rnr},
     Manner::kAnswers,
     has<&Effects::rnr>,
     [](const Effects&) -> std::string { return "acts as if no receive were posted"; },
     kAlone,
     flag_or_number<0, 31>},
    {{"nak", kRequest, read_nak},
     Manner::kAnswers,
     has_value<&Effects::answer>,
     [](const Effects& e) { return "answers with " + answer_text(*e.answer); },
     kWithValue,
     [](Where) {
       return json_schema::any_of({json_schema::words(kNakNames), json_schema::number(0, 31)});
     }},
    {{"silent", kRequest, read_flag_of<&Effects::silent>},
     Manner::kAnswers,
     has<&Effects::silent>,
     [](const Effects&) -> std::string { return "ignores"; },
     kAlone,
     flag_value},
    {{"status", kWorkRequest | kCompletion | kCmEvent | kNow, read_status},
     Manner::kAlters,
     [](const Effects& e) { return e.status || e.cm_status; },
     status_text,
     kWithValue,
     status_value},
    {{"vendor_err", kWorkRequest | kCompletion,
      read_number_of<&Effects::vendor_error, 0, UINT32_MAX>},
     Manner::kBeside,
     has<&Effects::vendor_error>,
     nullptr,
     kWithValue,
     number_value<0, UINT32_MAX>},
    {{"hold", kCompletion, read_number_of<&Effects::hold, 2, 1u << 20>},
     Manner::kAlters,
     has<&Effects::hold>,
     [](const Effects& e) { return fmt::format("holds completions until there are {}", e.hold); },
     kWithValue,
     number_value<2, 1u << 20>},
    {{"overrun", kCompletion, read_flag_of<&Effects::overrun>},
     Manner::kAlters,
     has<&Effects::overrun>,
     [](const Effects&) -> std::string { return "overruns the CQ"; },
     kAlone,
     flag_value},
    {{"event", kEvent | kCmEvent, read_event},
     Manner::kAlters,
     [](const Effects& e) { return e.event || e.cm_event; },
     event_text,
     kWithValue,
     [](Where where) { return json_schema::ref(where == Where::kEvent ? "event" : "cm_event"); }},
    {{"errno", kVerb, read_errno},
     Manner::kBeside,
     has<&Effects::error>,
     errno_text,
     kWithValue,
     [](Where) { return json_schema::ref("errno"); }},
    {{"raise", kEverywhere & ~kLink & ~kCmEvent,
      [](Reading in, const Node& v) {
        in.rule.effects.raise = static_cast<abi::EventType>(in.reader.name(v, kEventNames));
      }},
     Manner::kBeside,
     has_value<&Effects::raise>,
     [](const Effects& e) { return fmt::format("raises {}", abi::name_of(*e.raise)); },
     kWithValue,
     [](Where) { return json_schema::ref("event"); }},
    {{"raise_cm", kCmEvent | kNow,
      [](Reading in, const Node& v) {
        in.rule.effects.raise_cm =
            static_cast<abi::ucma::EventType>(in.reader.name(v, kCmEventNames));
      }},
     Manner::kBeside,
     has_value<&Effects::raise_cm>,
     [](const Effects& e) { return fmt::format("raises {}", abi::name_of(*e.raise_cm)); },
     kWithValue,
     [](Where) { return json_schema::ref("cm_event"); }},
    {{"port", kEverywhere & ~kLink, read_port},
     Manner::kBeside,
     has_value<&Effects::port>,
     [](const Effects& e) -> std::string {
       return e.port->up ? "takes the port up" : "takes the port down";
     },
     kWithValue,
     [](Where) {
       return json_schema::any_of(
           {{{"enum", {"up", "down"}}}, json_schema::object({{"down", json_schema::time()}})});
     }},
    {{"gid", kEverywhere & ~kLink, read_gid},
     Manner::kBeside,
     has_value<&Effects::gid>,
     [](const Effects&) -> std::string { return "changes the GID"; },
     kWithValue,
     gid_value},
    {{"remove_device", kEverywhere & ~kLink, read_flag_of<&Effects::remove_device>},
     Manner::kBeside,
     has<&Effects::remove_device>,
     [](const Effects&) -> std::string { return "pulls the device out"; },
     kAlone,
     flag_value},
    {{"pause", kEverywhere & ~kLink, read_flag_of<&Effects::pause>},
     Manner::kBeside,
     has<&Effects::pause>,
     [](const Effects&) -> std::string { return "pauses the NIC"; },
     kAlone,
     flag_value},
    {{"kill", kEverywhere & ~kCm & ~kLink & ~kNow, read_flag_of<&Effects::kill>},
     Manner::kBeside,
     has<&Effects::kill>,
     [](const Effects&) -> std::string { return "kills its process"; },
     kAlone,
     flag_value},
    {{"down", kNetwork, read_down},
     Manner::kBeside,
     [](const Effects& e) { return e.network.is_down; },
     [](const Effects&) -> std::string { return "takes it down"; },
     kAlone,
     flag_value},
    {{"flap", kNetwork, read_flap},
     Manner::kBeside,
     [](const Effects& e) { return e.network.flap.has_value(); },
     [](const Effects& e) { return "takes the link down for " + in_words(e.network.flap->down); },
     kWithValue,
     flap_value},
    {{"corruption", kNetwork,
      [](Reading in, const Node& v) {
        in.rule.effects.network.corruption = in.reader.probability(v);
      }},
     Manner::kBeside,
     [](const Effects& e) { return e.network.corruption > 0; },
     [](const Effects& e) {
       return fmt::format("corrupts {:g} % of its frames", 100 * e.network.corruption);
     },
     kWithValue,
     [](Where) { return json_schema::probability(); }},
    {{"reboot", kNetwork,
      [](Reading in, const Node& v) { in.rule.effects.network.outage = read_time(in, v); }},
     Manner::kBeside,
     [](const Effects& e) { return e.network.outage.has_value(); },
     [](const Effects& e) { return "reboots the switch for " + in_words(*e.network.outage); },
     kWithValue,
     time_value},
    {{"ecn", kNetwork, read_ecn},
     Manner::kBeside,
     [](const Effects& e) { return e.network.ecn.has_value(); },
     [](const Effects&) -> std::string { return "changes its ECN thresholds"; },
     kWithValue,
     ecn_value},
    {{"pause_storm", kNetwork, read_pause_storm},
     Manner::kBeside,
     [](const Effects& e) { return e.network.pause_storm.has_value(); },
     [](const Effects&) -> std::string { return "makes the host pause its switch"; },
     kAlone,
     flag_or_number<0, 7>},
};

}  // namespace

std::span<const Effect> effect_table() {
  return kEffects;
}

std::span<const Key> effect_keys() {
  static const auto keys = [] {
    std::array<Key, std::size(kEffects)> all;
    std::ranges::transform(kEffects, all.begin(), &Effect::key);
    return all;
  }();
  return keys;
}

std::string in_words(const Effects& effects) {
  std::string words;
  for (const Effect& effect : kEffects) {
    if (effect.words == nullptr || !effect.is_in(effects)) continue;
    words += (words.empty() ? "" : ", ") + effect.words(effects);
  }
  return words.empty() ? "acts" : words;
}

}  // namespace rocemu::scenario
