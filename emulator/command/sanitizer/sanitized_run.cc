#include "emulator/command/sanitizer/sanitized_run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/sanitizer/finding_text.h"
#include "emulator/command/sanitizer/findings.h"
#include "emulator/sanitizer/rules.h"

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
         (meant.empty() ? "; rocemu explain --list has their names"
                        : "; did you mean '" + meant + "'?");
}

sanitizer::Selection selected_rules(const std::string& text) {
  sanitizer::SelectionResult selected = sanitizer::select_rules(text);
  if (!selected.unknown.empty())
    throw UsageError("run: --sanitize: " + unknown_rule(selected.unknown));
  if (selected.rules.empty()) throw UsageError("run: --sanitize: no rule is left");
  return std::move(selected.rules);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) fail_with_errno("cannot write " + path, errno);
}

/// Reports a file that cannot be written before the run begins, and empties it, so that nobody
/// mistakes the reports of an earlier run for those of this one.
void require_writable(const std::string& path) {
  std::ofstream file(path);
  if (!file)
    throw Failure("run: cannot write --sanitize-report " + path + ": " + std::strerror(errno));
}

}  // namespace

std::unique_ptr<SanitizedRun> SanitizedRun::make(const po::variables_map& values) {
  if (values.count(kOption) == 0) {
    for (const char* option : {"sanitize-report", "sanitize-suppressions", "sanitize-trap"})
      if (values.count(option) != 0)
        throw UsageError("run: --" + std::string(option) + " needs --sanitize");
    return nullptr;
  }
  std::unique_ptr<SanitizedRun> run(new SanitizedRun());
  const sanitizer::Selection rules = selected_rules(values[kOption].as<std::string>());
  std::string names;
  for (const Rule* rule : sanitizer::rules())
    if (rules.contains(rule)) names += std::string(rule->id) + "\n";
  if (values.count("sanitize-trap") != 0) {
    const std::string name = values["sanitize-trap"].as<std::string>();
    const Rule* const rule = sanitizer::find_rule(name);
    if (rule == nullptr) throw UsageError("run: --sanitize-trap: " + unknown_rule(name));
    if (!rules.contains(rule))
      throw UsageError("run: --sanitize-trap: --sanitize does not look for " + name);
    if (rule->make == nullptr)
      throw UsageError("run: --sanitize-trap: the NIC finds " + name +
                       ", and no thread that could be stopped");
    write_file(run->directory() + "/" + abi::kSanitizerTrap, name + "\n");
  }
  if (values.count("sanitize-suppressions") != 0)
    run->suppressions_ = Suppressions::read(values["sanitize-suppressions"].as<std::string>());
  if (values.count("sanitize-report") != 0) {
    const std::string report = values["sanitize-report"].as<std::string>();
    report_format(report);
    run->report_ = std::filesystem::absolute(report).string();
    require_writable(run->report_);
  }
  write_file(run->directory() + "/" + abi::kSanitizerRules, names);
  return run;
}

bool SanitizedRun::finish() const {
  std::vector<Misuse> findings = read_findings(directory());
  std::erase_if(findings, [&](const Misuse& one) { return suppressions_.suppress(one); });
  for (const Misuse& one : findings) std::cerr << "rocemu: " + in_words(one);
  if (!findings.empty()) std::cerr << summary_of(findings) + "\n";
  bool failed = std::ranges::any_of(findings, [](const Misuse& one) {
    return one.rule->severity == sanitizer::Severity::kError;
  });
  if (report_.empty()) return failed;
  std::ofstream file(report_);
  file << to_text(findings, report_format(report_), std::filesystem::current_path().string());
  if (!file.flush()) {
    std::cerr << "rocemu: cannot write " + report_ + ": " + std::strerror(errno) + "\n";
    failed = true;
  }
  return failed;
}

}  // namespace rocemu::command
