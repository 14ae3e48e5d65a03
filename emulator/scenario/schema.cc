#include "emulator/scenario/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "emulator/scenario/effects.h"
#include "emulator/scenario/rule_keys.h"
#include "emulator/scenario/rule_names.h"
#include "emulator/scenario/schema_values.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Where;
using json_schema::Json;

Json opcodes(Where where) {
  if (where == Where::kWorkRequest) return json_schema::ref("wr_opcode");
  if (where == Where::kCompletion) return json_schema::ref("wc_opcode");
  return json_schema::ref("opcode");
}

Json selection_value(std::string_view key, Where where) {
  const bool of_packet = where == Where::kFrame || where == Where::kRequest;
  if (key == "device" || key == "from" || key == "to") return json_schema::text();
  if (key == "link" || key == "port" || key == "switch" || key == "host")
    return json_schema::text();
  if (key == "between") {
    return {{"type", "array"}, {"items", json_schema::text()}, {"minItems", 2}, {"maxItems", 2}};
  }
  if (key == "process") return json_schema::one_or_list(json_schema::text());
  if (key == "qp") return json_schema::ranges(1, kMax24);
  if (key == "qp_num" || key == "dest_qp" || key == "psn" || key == "psn_num") {
    return json_schema::ranges(0, kMax24);
  }
  if (key == "transport") return json_schema::words({"RC", "UC", "UD", "XRC"});
  if (key == "opcode") return json_schema::one_or_list(opcodes(where));
  if (key == "message") return json_schema::ranges(1, UINT32_MAX);
  if (key == "size") return json_schema::ranges(0, of_packet ? kMaxPayload : kAny);
  if (key == "wr_id") return json_schema::ranges(0, kAny);
  if (key == "queue") return {{"enum", {"send", "recv"}}};
  if (key == "status") return json_schema::one_or_list(json_schema::ref("wc_status"));
  if (key == "event")
    return json_schema::one_or_list(
        json_schema::ref(where == Where::kEvent ? "event" : "cm_event"));
  if (key == "mad") return json_schema::one_or_list(json_schema::ref("mad"));
  if (key == "verb") return json_schema::one_or_list(json_schema::ref("verb"));
  if (key == "nth" || key == "nth_total") return json_schema::ranges(1, kAny);
  if (key == "every" || key == "burst" || key == "count" || key == "total")
    return json_schema::number(1, kAny);
  if (key == "after" || key == "for") return json_schema::time();
  if (key == "probability") return json_schema::probability();
  throw std::logic_error(fmt::format("the schema does not know '{}'", key));
}

Json changes() {
  Json properties = Json::object();
  for (const Name& field : kFieldNames.names) {
    properties[std::string(field.text)] = {{"type", {"integer", "string", "boolean"}}};
  }
  return properties;
}

/// Returns the schema of a frame in the effect `inject`.
Json frame() {
  Json properties = changes();
  properties["to"] = {{"enum", {"sender", "receiver"}}};
  properties["payload"] = json_schema::number(0, kMaxPayload);
  return json_schema::object(properties);
}

Json cm_status() {
  const std::string sign = "-?";
  std::string all;
  for (const std::string_view name : errno_names().texts())
    all += "|" + json_schema::in_any_case(name);
  return json_schema::any_of(
      {json_schema::words(kRejectReasonNames),
       {{"type", "integer"}},
       json_schema::pattern(fmt::format("{}({}{})", sign, json_schema::kDecimal, all))});
}

bool is_at(const Key& key, Where where) {
  return (key.places & at(where)) != 0;
}

Json effects_at(Where where) {
  Json alone = Json::array(), properties = Json::object();
  for (const Effect& effect : effect_table()) {
    if (!is_at(effect.key, where)) continue;
    properties[std::string(effect.key.name)] = effect.value(where);
    if (effect.may_stand_alone) alone.push_back(effect.key.name);
  }
  std::vector<Json> forms;
  if (!alone.empty()) forms.push_back({{"enum", alone}});
  forms.push_back(json_schema::object(properties));
  return json_schema::one_or_list(json_schema::any_of(forms));
}

/// Returns the schema of a rule whose `on` is this place.
Json rule_at(Where where, std::string_view place) {
  Json properties{{"on", {{"const", place}}}, {"name", json_schema::text()}};
  for (const Key& key : selection_keys()) {
    if (is_at(key, where)) properties[std::string(key.name)] = selection_value(key.name, where);
  }
  properties["do"] = effects_at(where);
  return {{"properties", properties}, {"additionalProperties", false}};
}

Json definitions() {
  return {{"opcode", json_schema::words(opcode_names())},
          {"wr_opcode", json_schema::words(kWrOpcodeNames)},
          {"wc_opcode", json_schema::words(kWcOpcodeNames)},
          {"wc_status", json_schema::words(kWcStatusNames)},
          {"event", json_schema::words(kEventNames)},
          {"cm_event", json_schema::words(kCmEventNames)},
          {"cm_status", cm_status()},
          {"mad", json_schema::words(kCmMessageNames)},
          {"verb", json_schema::words(verb_names())},
          {"errno", json_schema::any_of(
                        {json_schema::words(errno_names()), json_schema::number(0, 0xffff)})},
          {"reject_reason", json_schema::any_of({json_schema::words(kRejectReasonNames),
                                                 json_schema::number(0, 0xffff)})},
          {"rewrite", json_schema::object(changes())},
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
