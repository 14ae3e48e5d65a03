#include "emulator/explore/findings/conclusion.h"

#include <algorithm>
#include <iostream>

#include "emulator/explore/files.h"

namespace rocemu::explore {
namespace {

constexpr int kExitFound = 1;

void set_known(std::vector<Finding>& findings, const std::string& file) {
  if (file.empty()) return;
  const Json json = Json::parse(contents_of(file), nullptr, false);
  if (!json.is_object() || !json.contains("findings"))
    throw ExploreError("--known " + file +
                       " is not a report.json of rocemu explore; copy one from a findings folder");
  for (Finding& finding : findings) {
    finding.known = std::ranges::any_of(json["findings"], [&](const Json& one) {
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

int conclude(const Options& options, const Summary& summary,
             const std::map<size_t, Result>& results, std::vector<Finding>& findings) {
  set_known(findings, options.known);
  write_reports(options.folder, summary, results, findings);
  print(options, summary, results, findings);
  return exit_status(findings, options.fails_on);
}

}  // namespace rocemu::explore
