// Writes the findings of an exploration for users and for programs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings/findings.h"

namespace rocemu::explore {

struct Summary {
  std::vector<std::string> command, fabric;  // fabric: options for `rocemu run`
  bool lockstep = true;
  std::string folder;  // of the findings, as the user named it
  size_t points = 0, classes = 0, trials = 0;
  int64_t baseline_ns = 0;
  bool deterministic = true;
  std::string stopped;  // why some runs are missing; empty if none are
  std::vector<Trial> not_tried = {};
};

/// Returns the command with the quotes that a shell needs.
std::string shell_text(const std::vector<std::string>& command);
/// Returns a line for each thread, with its stack.
std::string stacks_text(const Finding& finding);
std::string reproduce_line(const Summary& summary, const Finding& finding);

/// Returns the text of report.txt in the finding's folder.
std::string report_on(const Summary& summary, const Finding& finding);

/// Returns how often the finding was repeated, such as "confirmed by 1 of 2 repetitions".
std::string repetitions_text(const Finding& finding);
/// Returns the number of trials and of each verdict, such as "90 of 90 faults at 18 fault points in
/// 17 classes: 30 SURVIVED 60 REPORTED".
std::string counts_text(const Summary& summary, const std::map<size_t, Result>& results);
/// Returns the reason why the exploration ended early, and what was not done because of that.
std::string stopped_text(const Summary& summary, const std::vector<Finding>& findings);

/// Writes all reports into the folder: report.txt, report.json, report.xml (JUnit), report.sarif
/// and report.html. Throws std::system_error.
void write_reports(const std::filesystem::path& folder, const Summary& summary,
                   const std::map<size_t, Result>& results, const std::vector<Finding>& findings);

std::string report_as_text(const Summary& summary, const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings);
Json report_as_json(const Summary& summary, const std::map<size_t, Result>& results,
                    const std::vector<Finding>& findings);

}  // namespace rocemu::explore
