// Reads the numbers of options whose values are text.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/options/read_number.h"

namespace rocemu::command {

/// Returns the number in `text`, the value of `option` ("--jobs"). Throws UsageError, such as
/// "explore: --jobs '-1' is not a number from 1 to 1000".
uint64_t read_number(std::string_view subcommand, std::string_view option, std::string_view text,
                     const options::NumberRange& range);

/// Does the same for a number that can have a fraction.
double read_decimal(std::string_view subcommand, std::string_view option, std::string_view text,
                    double least, double most);

/// Returns the number of the option with this name, without "--"; nothing if the option is not
/// given. Throws UsageError.
std::optional<uint64_t> number_option(std::string_view subcommand,
                                      const boost::program_options::variables_map& values,
                                      const std::string& name, const options::NumberRange& range);

}  // namespace rocemu::command
