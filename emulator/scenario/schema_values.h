// JSON schemas of the values in a scenario
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/scenario/rule_names.h"

namespace rocemu::scenario::json_schema {

using Json = nlohmann::ordered_json;

/// A regular expression for decimal numbers.
inline constexpr std::string_view kDecimal = "(0|[1-9][0-9]*)";

Json any_of(std::vector<Json> schemas);
Json pattern(const std::string& text);
Json one_or_list(const Json& schema);
Json integer(uint64_t least, uint64_t most);
Json number(uint64_t least, uint64_t most);
/// Returns the schema of ranges: a number, FIRST-LAST, FIRST-, or a list of these.
Json ranges(uint64_t least, uint64_t most);
Json time();
Json probability();
Json bandwidth();
/// Returns the schema of a number of bytes.
Json size();
Json text();
/// Returns the schema of a name. Editors offer `texts`, and also accept them in any case and with
/// '-' or ' ' for '_'.
Json words(const std::vector<std::string>& texts, std::string_view prefix = "");
Json words(const Names& names);
/// Returns the schema of a flag, which is true or missing.
Json flag();
Json object(Json properties);
Json object(Json properties, Json required);  // a list of names
/// Returns a reference to a definition in the schema.
Json ref(const char* name);

/// Returns a regular expression that matches the word in upper or lower case, and with '-' or ' '
/// for '_'.
std::string in_any_case(std::string_view word);

}  // namespace rocemu::scenario::json_schema
