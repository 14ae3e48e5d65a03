// What an exploration found, for people and for machines.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings.h"

namespace rocemu::explore {

struct Summary {
  std::vector<std::string> command, fabric;  // fabric: options for `rocemu run`
  bool lockstep = true;
  std::string folder;  // of the findings, as the user named it
  size_t points = 0, classes = 0, trials = 0;
  int64_t baseline_ns = 0;
  bool deterministic = true;
  std::string stopped;  // why not all trials were run; empty if they were
};

/// The command as a shell takes it.
std::string shell_text(const std::vector<std::string>& command);
/// A line for each thread.
std::string stacks_text(const Finding& finding);
std::string reproduce_line(const Summary& summary, const Finding& finding);

/// Writes report.txt, report.json, report.xml (JUnit), report.sarif and report.html into the
/// folder. Throws std::system_error.
void write_reports(const std::filesystem::path& folder, const Summary& summary,
                   const std::map<size_t, Result>& results, const std::vector<Finding>& findings);

std::string report_as_text(const Summary& summary, const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings);
Json report_as_json(const Summary& summary, const std::map<size_t, Result>& results,
                    const std::vector<Finding>& findings);

}  // namespace rocemu::explore
