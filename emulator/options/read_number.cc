#include "emulator/options/read_number.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace rocemu::options {
namespace {

template <class Number>
std::optional<Number> read_whole(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<uint64_t> read_number(std::string_view text) {
  return read_whole<uint64_t>(text);
}

uint64_t read_number_in(std::string_view option, std::string_view text, const NumberRange& range) {
  const std::optional<uint64_t> number = read_number(text);
  if (number && *number >= range.least && *number <= range.most) return *number;
  const std::string most = range.most == UINT64_MAX ? "2^64-1" : std::to_string(range.most);
  throw OptionError(fmt::format("{}{}'{}' is not a {} from {} to {}", option,
                                option.empty() ? "" : " ", text, range.noun, range.least, most));
}

double read_decimal_in(std::string_view option, std::string_view text, double least, double most) {
  const std::optional<double> number = read_whole<double>(text);
  if (number && *number >= least && *number <= most) return *number;  // false for NaN
  throw OptionError(
      fmt::format("{} '{}' is not a number from {} to {}", option, text, least, most));
}

}  // namespace rocemu::options
