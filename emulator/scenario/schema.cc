#include "emulator/scenario/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "emulator/engine/config.h"
#include "emulator/scenario/rule_keys.h"
#include "emulator/scenario/rule_names.h"

namespace rocemu::scenario {
namespace {

using Json = nlohmann::ordered_json;
using engine::faults::Where;

constexpr std::string_view kDecimal = "(0|[1-9][0-9]*)";
constexpr std::string_view kHexadecimal = "0[xX][0-9a-fA-F]+";
constexpr std::string_view kFraction = "([0-9]+\\.?[0-9]*|\\.[0-9]+)";
constexpr uint64_t kLargestExact = uint64_t{1} << 53;  // of the numbers of JSON readers

Json any_of(std::vector<Json> schemas) {
  return {{"anyOf", std::move(schemas)}};
}

Json pattern(const std::string& text) {
  return {{"type", "string"}, {"pattern", "^" + text + "$"}};
}

Json one_or_list(const Json& schema) {
  return any_of({schema, {{"type", "array"}, {"items", schema}, {"minItems", 1}}});
}

Json integer(uint64_t least, uint64_t most) {
  Json json{{"type", "integer"}, {"minimum", least}};
  if (most < kLargestExact) json["maximum"] = most;
  return json;
}

Json number(uint64_t least, uint64_t most) {
  return any_of({integer(least, most), pattern(std::string(kHexadecimal))});
}

Json ranges(uint64_t least, uint64_t most) {
  const std::string one = fmt::format("({}|{})", kDecimal, kHexadecimal);
  return one_or_list(any_of({integer(least, most), pattern(fmt::format("{0}(-({0})?)?", one))}));
}

Json time() {
  Json json = pattern(fmt::format("{} *(ns|us|ms|s|min)", kFraction));
  json["examples"] = {"10us", "1.5ms", "2s"};
  return json;
}

Json probability() {
  return any_of({{{"type", "number"}, {"minimum", 0}, {"maximum", 1}},
                 pattern(fmt::format("{} *%", kFraction))});
}

Json bandwidth() {
  Json json = pattern(fmt::format("{} *(|k|M|G)bit/s", kFraction));
  json["examples"] = {"100Mbit/s", "10Gbit/s"};
  return json;
}

/// Of a word in any case, '-' and ' ' as good as '_'.
std::string in_any_case(std::string_view word) {
  std::string text;
  for (const char c : normalized(word)) {
    if (c >= 'A' && c <= 'Z') {
      text += fmt::format("[{}{}]", c, static_cast<char>(c - 'A' + 'a'));
    } else if (c == '_') {
      text += "[_ -]";
    } else {
      text += c;
    }
  }
  return text;
}

/// The names, which editors offer, in any spelling.
template <class Texts>
Json words(const Texts& texts, std::string_view prefix = "") {
  std::string all;
  Json names = Json::array();
  for (const auto& text : texts) {
    if (std::find(names.begin(), names.end(), text) != names.end()) continue;
    names.push_back(text);
    all += (all.empty() ? "" : "|") + in_any_case(text);
  }
  const std::string before = prefix.empty() ? "" : "(" + in_any_case(prefix) + ")?";
  return any_of({{{"enum", names}}, pattern(fmt::format("{}({})", before, all))});
}

Json words(const Names& names) {
  return words(names.texts(), names.prefix);
}

Json text() {
  return {{"type", "string"}, {"minLength", 1}};
}

/// What definitions() has under that name.
Json ref(const char* name) {
  return {{"$ref", std::string("#/definitions/") + name}};
}

/// Of keys that are true or left out.
Json flag() {
  return {{"const", true}};
}

Json object(Json properties, Json required = Json::array()) {
  Json json{{"type", "object"},
            {"properties", std::move(properties)},
            {"additionalProperties", false},
            {"minProperties", 1}};
  if (!required.empty()) json["required"] = std::move(required);
  return json;
}

Json opcodes(Where where) {
  if (where == Where::kWorkRequest) return ref("wr_opcode");
  if (where == Where::kCompletion) return ref("wc_opcode");
  return ref("opcode");
}

Json selection_value(std::string_view key, Where where) {
  const bool of_packet = where == Where::kFrame || where == Where::kRequest;
  if (key == "device" || key == "from" || key == "to") return text();
  if (key == "between") {
    return {{"type", "array"}, {"items", text()}, {"minItems", 2}, {"maxItems", 2}};
  }
  if (key == "process") return one_or_list(text());
  if (key == "qp") return ranges(1, kMax24);
  if (key == "qp_num" || key == "dest_qp" || key == "psn" || key == "psn_num") {
    return ranges(0, kMax24);
  }
  if (key == "transport") return words(std::vector<std::string>{"RC", "UC", "UD", "XRC"});
  if (key == "opcode") return one_or_list(opcodes(where));
  if (key == "message") return ranges(1, UINT32_MAX);
  if (key == "size") return ranges(0, of_packet ? kMaxPayload : kAny);
  if (key == "wr_id") return ranges(0, kAny);
  if (key == "queue") return {{"enum", {"send", "recv"}}};
  if (key == "status") return one_or_list(ref("wc_status"));
  if (key == "event") return one_or_list(ref(where == Where::kEvent ? "event" : "cm_event"));
  if (key == "mad") return one_or_list(ref("mad"));
  if (key == "verb") return one_or_list(ref("verb"));
  if (key == "nth" || key == "nth_total") return ranges(1, kAny);
  if (key == "every" || key == "burst" || key == "count" || key == "total") return number(1, kAny);
  if (key == "after" || key == "for") return time();
  if (key == "probability") return probability();
  throw std::logic_error(fmt::format("the schema does not know '{}'", key));
}

Json changes() {
  Json properties = Json::object();
  for (const Name& field : kFieldNames.names) {
    properties[std::string(field.text)] = {{"type", {"integer", "string", "boolean"}}};
  }
  return properties;
}

/// Of `inject`.
Json frame() {
  Json properties = changes();
  properties["to"] = {{"enum", {"sender", "receiver"}}};
  properties["payload"] = number(0, kMaxPayload);
  return object(properties);
}

Json cm_status() {
  const std::string sign = "-?";
  std::string all;
  for (const std::string_view name : errno_names().texts()) all += "|" + in_any_case(name);
  return any_of({words(kRejectReasonNames),
                 {{"type", "integer"}},
                 pattern(fmt::format("{}({}{})", sign, kDecimal, all))});
}

Json effect_value(std::string_view key, Where where) {
  const Json icrc = {{"enum", {"icrc", true}}};
  if (key == "drop" || key == "log" || key == "partition" || key == "silent" || key == "overrun" ||
      key == "remove_device" || key == "kill" || key == "pause") {
    return flag();
  }
  if (key == "delay" || key == "jitter" || key == "latency") return time();
  if (key == "duplicate") return any_of({flag(), number(1, 1000)});
  if (key == "reorder") return any_of({flag(), number(1, 100000)});
  if (key == "corrupt") {
    return any_of({icrc, object({{"bits", one_or_list(number(0, uint64_t{8} * 4400))},
                                 {"random_bits", number(1, 1024)},
                                 {"icrc", {{"type", "boolean"}}}})});
  }
  if (key == "rewrite") return ref("rewrite");
  if (key == "inject") return one_or_list(ref("frame"));
  if (key == "reject") {
    const Json reason = ref("reject_reason");
    return any_of({reason, object({{"reason", reason}, {"private_data", {{"type", "string"}}}})});
  }
  if (key == "bandwidth") return bandwidth();
  if (key == "loss") return probability();
  if (key == "rnr") return any_of({flag(), number(0, 31)});
  if (key == "nak") return any_of({words(kNakNames), number(0, 31)});
  if (key == "status") {
    const bool of_cm = where == Where::kCmEvent || where == Where::kNow;
    return ref(of_cm ? "cm_status" : "wc_status");
  }
  if (key == "vendor_err") return number(0, UINT32_MAX);
  if (key == "hold") return number(2, 1u << 20);
  if (key == "event") return ref(where == Where::kEvent ? "event" : "cm_event");
  if (key == "errno") return ref("errno");
  if (key == "raise") return ref("event");
  if (key == "raise_cm") return ref("cm_event");
  if (key == "port") return any_of({{{"enum", {"up", "down"}}}, object({{"down", time()}})});
  if (key == "gid") {
    return object({{"index", number(0, engine::kGidTableLength - 1)}, {"address", text()}},
                  {"index", "address"});
  }
  throw std::logic_error(fmt::format("the schema does not know 'do: {}'", key));
}

/// Of `do: drop`.
bool may_stand_alone(std::string_view key) {
  constexpr std::string_view kWords[] = {"drop",    "log",           "duplicate", "reorder",
                                         "corrupt", "partition",     "rnr",       "silent",
                                         "overrun", "remove_device", "kill",      "pause"};
  return std::ranges::find(kWords, key) != std::end(kWords);
}

bool is_at(const Key& key, Where where) {
  return (key.places & at(where)) != 0;
}

Json effects_at(Where where) {
  Json alone = Json::array(), properties = Json::object();
  for (const Key& key : effect_keys()) {
    if (!is_at(key, where)) continue;
    properties[std::string(key.name)] = effect_value(key.name, where);
    if (may_stand_alone(key.name)) alone.push_back(key.name);
  }
  std::vector<Json> forms;
  if (!alone.empty()) forms.push_back({{"enum", alone}});
  forms.push_back(object(properties));
  return one_or_list(any_of(forms));
}

/// All that a rule at that place may have.
Json rule_at(Where where, std::string_view place) {
  Json properties{{"on", {{"const", place}}}, {"name", text()}};
  for (const Key& key : selection_keys()) {
    if (is_at(key, where)) properties[std::string(key.name)] = selection_value(key.name, where);
  }
  properties["do"] = effects_at(where);
  return {{"properties", properties}, {"additionalProperties", false}};
}

Json definitions() {
  return {{"opcode", words(opcode_names())},
          {"wr_opcode", words(kWrOpcodeNames)},
          {"wc_opcode", words(kWcOpcodeNames)},
          {"wc_status", words(kWcStatusNames)},
          {"event", words(kEventNames)},
          {"cm_event", words(kCmEventNames)},
          {"cm_status", cm_status()},
          {"mad", words(kCmMessageNames)},
          {"verb", words(verb_names())},
          {"errno", any_of({words(errno_names()), number(0, 0xffff)})},
          {"reject_reason", any_of({words(kRejectReasonNames), number(0, 0xffff)})},
          {"rewrite", object(changes())},
          {"frame", frame()}};
}

}  // namespace

std::string schema() {
  Json places = Json::array(), cases = Json::array();
  for (const Name& place : kPlaceNames.names) {
    places.push_back(place.text);
    cases.push_back(
        {{"if", {{"properties", {{"on", {{"const", place.text}}}}}, {"required", {"on"}}}},
         {"then", rule_at(static_cast<Where>(place.value), place.text)}});
  }
  const Json rule{{"type", "object"},
                  {"required", {"on", "do"}},
                  {"properties", {{"on", {{"enum", places}}}}},
                  {"allOf", cases}};
  const Json file{
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "rocemu scenario"},
      {"description", "Faults of an emulated RDMA NIC; docs/scenarios.md describes them"},
      {"type", "object"},
      {"required", {"rules"}},
      {"additionalProperties", false},
      {"definitions", definitions()},
      {"properties",
       {{"name", {{"type", "string"}}},
        {"description", {{"type", "string"}}},
        {"group", {{"type", "string"}}},
        {"rules", {{"type", {"array", "null"}}, {"items", rule}}}}}};
  return file.dump(1) + "\n";
}

}  // namespace rocemu::scenario
