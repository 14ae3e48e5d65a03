#include "emulator/command/sanitizer/sanitizer_options.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/sanitizer/finding_files.h"
#include "emulator/command/sanitizer/suppressions.h"
#include "emulator/os/text_file.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using sanitizer::Rule;

constexpr char kOption[] = "sanitize";

std::string unknown_rule(const std::string& name) {
  std::vector<std::string_view> names = {"all"};
  for (const Rule* rule : sanitizer::rules()) names.push_back(rule->id);
  const std::string meant(nearest(name, names));
  return "there is no rule '" + name + "'" +
         (meant.empty() ? "; rocemu explain --list prints the names"
                        : "; did you mean '" + meant + "'?");
}

sanitizer::Selection selected_rules(const std::string& command, const std::string& text) {
  sanitizer::SelectionResult selected = sanitizer::select_rules(text);
  if (!selected.unknown.empty())
    throw UsageError(command + ": --sanitize: " + unknown_rule(selected.unknown));
  if (selected.rules.empty()) throw UsageError(command + ": --sanitize: all rules are excluded");
  return std::move(selected.rules);
}

const Rule* rule_to_trap(const std::string& command, const std::string& name,
                         const sanitizer::Selection& rules) {
  const std::string option = command + ": --sanitize-trap: ";
  const Rule* const rule = sanitizer::find_rule(name);
  if (rule == nullptr) throw UsageError(option + unknown_rule(name));
  if (!rules.contains(rule)) throw UsageError(option + "--sanitize does not select " + name);
  if (rule->make == nullptr)
    throw UsageError(option + "" + name + " is detected by the NIC, so no thread can be stopped");
  return rule;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) fail_with_errno("cannot write " + path, errno);
}

/// Throws an error before the run begins if the file cannot be written. Empties the file, so that
/// old reports cannot be mistaken for those of this run.
void require_writable(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw Failure("cannot write --sanitize-report " + path + ": " + std::strerror(errno));
}

/// Returns the text of the file. Throws Failure if the file cannot be read or a line is wrong.
std::string read_suppressions(const std::string& command, const std::string& file) {
  // Each run of `rocemu explore` reads the file.
  const TextFileKind kind{.noun = "list of suppressions", .is_read_again = command == "explore"};
  std::string text;
  try {
    text = read_text_file(file, kind);
  } catch (const TextFileError& error) {
    throw Failure(std::string("--sanitize-suppressions: ") + error.what());
  }
  Suppressions::parse(text, file);
  return text;
}

}  // namespace

std::optional<SanitizerOptions> read_sanitizer_options(const std::string& command,
                                                       const po::variables_map& values) {
  const auto text = [&](const char* option) {
    return values.count(option) != 0 ? std::optional(values[option].as<std::string>())
                                     : std::nullopt;
  };
  const auto rules = text(kOption), report = text("sanitize-report"),
             suppressions = text("sanitize-suppressions"), trap = text("sanitize-trap");
  if (!rules) {
    for (const char* option : {"sanitize-report", "sanitize-suppressions", "sanitize-trap"})
      if (text(option)) throw UsageError(command + ": --" + option + " needs --sanitize");
    return std::nullopt;
  }
  SanitizerOptions options;
  options.rules = selected_rules(command, *rules);
  if (trap) options.trap = rule_to_trap(command, *trap, options.rules);
  if (suppressions) {
    options.suppressions = read_suppressions(command, *suppressions);
  }
  if (report) {
    report_format(*report);  // throws if it is unknown
    options.report = std::filesystem::absolute(*report).string();
    require_writable(options.report);
  }
  return options;
}

void SanitizerOptions::write(const std::string& directory) const {
  const auto path = [&](const char* name) { return directory + "/" + name; };
  std::string names;
  for (const Rule* rule : sanitizer::rules())
    if (rules.contains(rule)) names += std::string(rule->id) + "\n";
  if (trap != nullptr) write_file(path(abi::kSanitizerTrap), std::string(trap->id) + "\n");
  if (!suppressions.empty()) write_file(path(abi::kSanitizerSuppressions), suppressions);
  if (!report.empty()) write_file(path(abi::kSanitizerReport), report);
  write_file(path(abi::kSanitizerLog), "");
  write_file(path(abi::kSanitizerRules), names);
}

}  // namespace rocemu::command
