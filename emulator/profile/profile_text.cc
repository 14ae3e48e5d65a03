#include "emulator/profile/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "emulator/profile/fields.h"
#include "emulator/profile/yaml_text.h"
#include "emulator/scenario/rule_names.h"
#include "emulator/scenario/schema_values.h"

namespace rocemu::profile {
namespace {

using Names = std::span<const FieldName>;
using scenario::json_schema::Json;

/// Returns whether drivers write this number in hexadecimal.
bool is_hexadecimal(std::string_view section, std::string_view key) {
  return section == "pci" || key == "vendor_id" || key == "hw_ver" || key == "page_size_cap" ||
         key == "max_mr_size" || key.ends_with("flags") || key.ends_with("flags_ex") ||
         key == "completion_timestamp_mask" || key == "max_msg_sz";
}

std::string error_text(int32_t error, std::string_view word_for_0) {
  if (error == 0) return std::string(word_for_0);
  const std::string_view name =
      scenario::errno_names().text_of(static_cast<uint32_t>(std::abs(error)));
  return (error < 0 ? "-" : "") + std::string(name);
}

class Writer {
 public:
  template <class T>
  void number(const char* section, const char* key, const T& value) {
    const auto wide = static_cast<uint64_t>(value);
    add(section, key,
        is_hexadecimal(section, key) ? fmt::format("{:#x}", wide) : std::to_string(wide));
  }
  void text(const char* section, const char* key, const std::string& value) {
    add(section, key, value.empty() ? "null" : yaml_text(value));
  }
  template <size_t N>
  void text(const char* section, const char* key, const char (&value)[N]) {
    text(section, key, std::string(value, strnlen(value, N)));
  }
  template <class T>
  void name(const char* section, const char* key, const T& value, Names names) {
    add(section, key, text_of(static_cast<uint64_t>(value), names));
  }
  template <class T>
  void names(const char* section, const char* key, const std::vector<T>& values, Names names) {
    std::string list;
    for (const T& value : values)
      list += (list.empty() ? "" : ", ") + text_of(static_cast<uint64_t>(value), names);
    add(section, key, "[" + list + "]");
  }
  template <class T>
  void bits(const char* section, const char* key, const T& value, Names names) {
    auto rest = static_cast<uint64_t>(value);
    const bool is_all = rest == std::numeric_limits<T>::max();
    std::string list;
    for (const FieldName& name : names) {
      if ((rest & name.value) == 0) continue;
      list += (list.empty() ? "" : ", ") + std::string(name.text);
      rest &= ~name.value;
    }
    // In sections other than `device`, bits without a name stand for opcodes and types that rocemu
    // does not support.
    const bool may_have_more = std::string_view(section) == "device";
    if (rest != 0 && may_have_more && !is_all)
      list += fmt::format("{}{:#x}", list.empty() ? "" : ", ", rest);
    add(section, key, "[" + list + "]");
  }
  void error(const char* section, const char* key, const int32_t& value,
             std::string_view word_for_0) {
    add(section, key, error_text(value, word_for_0));
  }
  void verbs(const char* section, const std::map<abi::Op, int32_t>& refused) {
    for (const abi::OperationInfo& row : abi::operations::kRows) {
      const auto found = refused.find(row.op);
      if (found != refused.end()) add(section, row.name, error_text(found->second, ""));
    }
  }

  std::vector<Line> take() { return std::move(lines_); }

 private:
  static std::string text_of(uint64_t value, Names names) {
    const auto found = std::ranges::find(names, value, &FieldName::value);
    return std::string(found != names.end() ? found->text : names.front().text);
  }
  void add(std::string_view section, std::string_view key, std::string value) {
    lines_.push_back({std::string(section), std::string(key), std::move(value)});
  }

  std::vector<Line> lines_;
};

/// Creates the schema of each field.
class SchemaWriter {
 public:
  template <class T>
  void number(const char* section, const char* key, const T&) {
    add(section, key, scenario::json_schema::number(0, std::numeric_limits<T>::max()));
  }
  template <class T>
  void text(const char* section, const char* key, const T&) {
    add(section, key, {{"type", {"string", "number", "null"}}});
  }
  template <class T>
  void name(const char* section, const char* key, const T&, Names names) {
    add(section, key, choice(names));
  }
  template <class T>
  void names(const char* section, const char* key, const std::vector<T>&, Names names) {
    add(section, key, {{"type", "array"}, {"items", choice(names)}});
  }
  template <class T>
  void bits(const char* section, const char* key, const T&, Names names) {
    add(section, key,
        {{"type", "array"},
         {"items",
          scenario::json_schema::any_of(
              {choice(names), scenario::json_schema::number(0, std::numeric_limits<T>::max())})}});
  }
  void error(const char* section, const char* key, const int32_t&, std::string_view) {
    add(section, key, {{"type", "string"}});
  }
  void verbs(const char* section, const std::map<abi::Op, int32_t>&) {
    for (const abi::OperationInfo& row : abi::operations::kRows)
      add(section, row.name, {{"type", "string"}});
  }

  Json take() {
    Json properties = Json::object();
    for (auto& [section, keys] : sections_) {
      if (section.empty()) {
        properties.update(keys);
      } else {
        properties[section] = {
            {"type", "object"}, {"additionalProperties", false}, {"properties", keys}};
      }
    }
    return properties;
  }

 private:
  static Json choice(Names names) {
    Json values = Json::array();
    for (const FieldName& name : names) {
      values.push_back(name.text);
      if (name.text == "true" || name.text == "false") values.push_back(name.text == "true");
      if (name.text.find_first_not_of("0123456789") == std::string_view::npos)
        values.push_back(std::stoi(std::string(name.text)));
    }
    return {{"enum", values}};
  }
  void add(std::string_view section, std::string_view key, Json value) {
    sections_[std::string(section)][std::string(key)] = std::move(value);
  }

  std::map<std::string, Json> sections_;
};

}  // namespace

std::vector<Line> lines_of(const engine::DeviceProfile& profile) {
  Writer writer;
  visit_fields(profile, writer);
  return writer.take();
}

std::string to_yaml(const engine::DeviceProfile& profile) {
  std::string text, section;
  for (const Line& line : lines_of(profile)) {
    if (line.section != section) text += fmt::format("\n{}:\n", line.section);
    section = line.section;
    text += fmt::format("{}{}: {}\n", section.empty() ? "" : "  ", line.key, line.value);
  }
  return text;
}

std::string schema() {
  SchemaWriter writer;
  visit_fields(*engine::generic_profile(), writer);
  const Json file{
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "rocemu profile"},
      {"description", "A NIC model that rocemu can emulate; docs/profiles.md describes profiles"},
      {"type", "object"},
      {"additionalProperties", false},
      {"properties", writer.take()}};
  return file.dump(1) + "\n";
}

}  // namespace rocemu::profile
