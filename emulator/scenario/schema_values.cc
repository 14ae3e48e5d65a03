#include "emulator/scenario/schema_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace rocemu::scenario::json_schema {
namespace {

constexpr std::string_view kHexadecimal = "0[xX][0-9a-fA-F]+";
constexpr std::string_view kFraction = "([0-9]+\\.?[0-9]*|\\.[0-9]+)";
constexpr uint64_t kLargestExact = uint64_t{1} << 53;  // the largest exact number of JSON readers

}  // namespace

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
  Json json = pattern(fmt::format("{} *(|k|M|G)(bit/s|bps)", kFraction));
  json["examples"] = {"100Mbit/s", "10Gbit/s"};
  return json;
}

Json size() {
  Json json = pattern(fmt::format("{} *(|B|KB|MB|GB|KiB|MiB|GiB)", kFraction));
  json["type"] = {"string", "integer"};
  json["examples"] = {"100KiB", "4MiB"};
  return json;
}

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

Json words(const std::vector<std::string>& texts, std::string_view prefix) {
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
  const std::vector<std::string_view> texts = names.texts();
  return words(std::vector<std::string>(texts.begin(), texts.end()), names.prefix);
}

Json text() {
  return {{"type", "string"}, {"minLength", 1}};
}

Json ref(const char* name) {
  return {{"$ref", std::string("#/definitions/") + name}};
}

Json flag() {
  return {{"const", true}};
}

Json object(Json properties) {
  return object(std::move(properties), Json::array());
}

Json object(Json properties, Json required) {
  Json json{{"type", "object"},
            {"properties", std::move(properties)},
            {"additionalProperties", false},
            {"minProperties", 1}};
  if (!required.empty()) json["required"] = std::move(required);
  return json;
}

}  // namespace rocemu::scenario::json_schema
