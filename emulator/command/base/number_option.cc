#include "emulator/command/base/number_option.h"

#include "emulator/command/base/error.h"

namespace rocemu::command {

uint64_t read_number(std::string_view subcommand, std::string_view option, std::string_view text,
                     const options::NumberRange& range) {
  try {
    return options::read_number_in(option, text, range);
  } catch (const options::OptionError& error) {
    throw UsageError(std::string(subcommand) + ": " + error.what());
  }
}

double read_decimal(std::string_view subcommand, std::string_view option, std::string_view text,
                    double least, double most) {
  try {
    return options::read_decimal_in(option, text, least, most);
  } catch (const options::OptionError& error) {
    throw UsageError(std::string(subcommand) + ": " + error.what());
  }
}

std::optional<uint64_t> number_option(std::string_view subcommand,
                                      const boost::program_options::variables_map& values,
                                      const std::string& name, const options::NumberRange& range) {
  if (values.count(name) == 0) return std::nullopt;
  return read_number(subcommand, "--" + name, values[name].as<std::string>(), range);
}

}  // namespace rocemu::command
