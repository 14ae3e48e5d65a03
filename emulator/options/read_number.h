// Reads the numbers in command lines.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rocemu::options {

/// An error in a command line: one line with the mistake and the correct form.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the value of the decimal number `text`; nothing if `text` is anything else, such as "-1"
/// or "2x".
std::optional<uint64_t> read_number(std::string_view text);

/// The numbers that an option can have, and the word for them in messages.
struct NumberRange {
  uint64_t least = 0;
  uint64_t most = 0;
  const char* noun = "number";
};

/// Returns the value of the option's text. Throws OptionError, such as "--devices '-1' is not a
/// number from 1 to 250". `option` is empty for an argument that is not an option.
uint64_t read_number_in(std::string_view option, std::string_view text, const NumberRange& range);

/// Does the same for a number that can have a fraction, such as 0.5.
double read_decimal_in(std::string_view option, std::string_view text, double least, double most);

}  // namespace rocemu::options
