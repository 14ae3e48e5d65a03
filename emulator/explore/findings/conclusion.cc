#include "emulator/explore/findings/conclusion.h"

#include <algorithm>
#include <iostream>

#include "emulator/os/text_file.h"

namespace rocemu::explore {
namespace {

constexpr int kExitFound = 1;

/// The maximum length of the file of --known.
constexpr size_t kMaxReport = size_t{256} << 20;

bool is_known_finding(const Json& json) {
  if (!json.is_object() || !json.contains("place") || !json["place"].is_string()) return false;
  return !json.contains("stacks") ||
         (json["stacks"].is_array() && std::ranges::all_of(json["stacks"], &Json::is_string));
}

void set_known(std::vector<Finding>& findings, const std::string& file) {
  if (file.empty()) return;
  const Json known = read_known(file);
  for (Finding& finding : findings) {
    finding.known = std::ranges::any_of(known, [&](const Json& one) {
      if (one.value("place", "") != finding.signature) return false;
      const auto stacks = one.value("stacks", std::vector<std::string>());
      // A finding without stacks matches any stacks, since stacks cannot be read on every machine.
      return stacks.empty() || finding.stacks.empty() || stacks == finding.stacks;
    });
  }
}

int exit_status(const std::vector<Finding>& findings, const std::set<Verdict>& fails_on) {
  const bool fails = std::ranges::any_of(findings, [&](const Finding& finding) {
    return !finding.known && !finding.is_warning && finding.is_repeatable() &&
           fails_on.contains(finding.verdict);
  });
  return fails ? kExitFound : 0;
}

void print(const Options& options, const Summary& summary, const std::map<size_t, Result>& results,
           const std::vector<Finding>& findings) {
  std::cout << (options.json ? report_as_json(summary, results, findings)
                                       .dump(2, ' ', false, Json::error_handler_t::replace) +
                                   "\n"
                             : report_as_text(summary, results, findings))
            << std::flush;
}

}  // namespace

Json read_known(const std::string& file) {
  Json json;
  try {
    json = Json::parse(
        read_text_file(
            file, {.noun = "report of --known", .most_bytes = kMaxReport, .is_read_again = true}),
        nullptr, false);
  } catch (const TextFileError& error) {
    throw ExploreError(error.what());
  }
  const bool is_report = json.is_object() && json.contains("findings") &&
                         json["findings"].is_array() &&
                         std::ranges::all_of(json["findings"], is_known_finding);
  if (!is_report)
    throw ExploreError("--known " + file +
                       " is not a report.json of rocemu explore; copy one from a findings folder");
  return json["findings"];
}

int conclude(const Options& options, const Summary& summary,
             const std::map<size_t, Result>& results, std::vector<Finding>& findings) {
  set_known(findings, options.known);
  write_reports(options.folder, summary, results, findings);
  print(options, summary, results, findings);
  return exit_status(findings, options.fails_on);
}

}  // namespace rocemu::explore
