#include <algorithm>
#include <numeric>
#include <sstream>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/options/describe.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

/// Returns the Levenshtein distance between two texts.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_option(const std::string& word, const po::options_description& description) {
  std::vector<std::string> names;
  for (const auto& option : description.options()) names.push_back("--" + option->long_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(nearest(word, views));
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = 3;  // at this distance, it is another word
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string word_of(const Arguments& arguments, const po::options_description& description,
                    unsigned number) {
  try {
    const auto parsed =
        po::command_line_parser(arguments).options(description).allow_unregistered().run();
    for (const po::option& option : parsed.options) {
      if (option.unregistered) break;
      if (option.position_key >= 0 && number-- == 0) return option.value.at(0);
    }
  } catch (const po::error&) {  // the complete parse reports the error
  }
  return {};
}

po::variables_map parse_options(std::string_view subcommand, const Arguments& arguments,
                                const po::options_description& description,
                                const po::positional_options_description& positional) {
  const std::string name(subcommand);
  const std::string see_help = "; rocemu " + name + " --help lists its options";
  po::variables_map values;
  try {
    namespace style = po::command_line_style;
    po::store(po::command_line_parser(arguments)
                  .options(description)
                  .positional(positional)
                  .style(style::unix_style & ~style::allow_guessing & ~style::allow_sticky)
                  .run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    const std::string option = error.get_option_name();
    if (const auto reason = options::why_unknown(option)) throw UsageError(name + ": " + *reason);
    const std::string meant = nearest_option(option, description);
    throw UsageError(name + ": unknown option '" + option + "'" +
                     (meant.empty() ? see_help : "; did you mean '" + meant + "'?"));
  } catch (const po::too_many_positional_options_error&) {
    const std::string word = word_of(arguments, description, positional.max_total_count());
    throw UsageError(name + ": unexpected argument '" + word + "'" + see_help);
  } catch (const po::invalid_command_line_syntax& error) {
    const std::string option = error.get_option_name();
    if (error.kind() == po::invalid_syntax::missing_parameter)
      throw UsageError(name + ": option '" + option + "' needs a value" + see_help);
    if (error.kind() == po::invalid_syntax::empty_adjacent_parameter)
      throw UsageError(name + ": option '" + option + "' has no value after '='" + see_help);
    throw UsageError(name + ": option '" + option + "' takes no value" + see_help);
  } catch (const po::multiple_occurrences& error) {
    throw UsageError(name + ": option '" + error.get_option_name() + "' is given twice" + see_help);
  } catch (const po::error& error) {
    throw UsageError(name + ": " + error.what() + see_help);
  }
  return values;
}

std::string to_text(const po::options_description& description) {
  std::ostringstream text;
  text << description;
  return text.str();
}

}  // namespace rocemu::command
