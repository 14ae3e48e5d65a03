#include "emulator/explore/findings/exploration_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "emulator/explore/files.h"
#include "emulator/explore/findings/report_junit.h"
#include "emulator/explore/findings/report_page.h"
#include "emulator/os/threads/stacks.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;

std::array<size_t, kVerdicts> count(const std::map<size_t, Result>& results) {
  std::array<size_t, kVerdicts> counts{};
  for (const auto& [number, result] : results) ++counts[static_cast<size_t>(result.verdict())];
  return counts;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char* severity_of(const Finding& finding) {
  const bool is_minor =
      finding.verdict == Verdict::kLeak || finding.verdict == Verdict::kSlow || finding.is_warning;
  return is_minor ? "warning" : "error";
}

Json as_sarif(const Summary& summary, const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    if (finding.known || !finding.is_repeatable()) continue;
    Json one;
    one["ruleId"] = name_of(finding.verdict);
    one["level"] = severity_of(finding);
    one["message"]["text"] =
        finding.sentence() + "\nreproduce: " + reproduce_line(summary, finding);
    Json location;
    location["physicalLocation"]["artifactLocation"]["uri"] =
        fmt::format("{}/{}/scenario.yaml", summary.folder, finding.number);
    one["locations"] = Json::array({location});
    one["partialFingerprints"]["place/v1"] = finding.signature;
    list.push_back(one);
  }
  Json rules = Json::array();
  for (const Verdict verdict : {Verdict::kHang, Verdict::kCrash, Verdict::kWrong, Verdict::kMisuse,
                                Verdict::kLeak, Verdict::kSlow})
    rules.push_back(Json{{"id", name_of(verdict)}});
  Json run;
  run["tool"]["driver"] =
      Json{{"name", "rocemu explore"}, {"version", ROCEMU_VERSION}, {"rules", rules}};
  run["results"] = list;
  return Json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", Json::array({run})}};
}

}  // namespace

std::string shell_text(const std::vector<std::string>& command) {
  constexpr std::string_view kPlain = "_-./=:,+@%";
  std::string text;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             kPlain.find(c) != std::string_view::npos;
    });
    std::string quoted = word;
    if (!plain) {
      quoted = "'";
      for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      quoted += "'";
    }
    text += (text.empty() ? "" : " ") + quoted;
  }
  return text;
}

std::string reproduce_line(const Summary& summary, const Finding& finding) {
  std::vector<std::string> options = summary.fabric;
  if (summary.lockstep) options.insert(options.begin(), "--lockstep");
  const Variation& variation = finding.smallest.variation;
  if (!variation.empty())
    options = variation.added_to(options);
  else if (!finding.smallest.is_undisturbed())
    options.insert(options.end(), {"--scenario", fmt::format("{}/{}/scenario.yaml", summary.folder,
                                                             finding.number)});
  options.emplace_back("--");
  return fmt::format("rocemu run {} {}", shell_text(options), shell_text(summary.command));
}

std::string stacks_text(const Finding& finding) {
  std::string text;
  for (const std::string& stack : finding.stacks) text += "  stack: " + stack + "\n";
  return text;
}

std::string report_on(const Summary& summary, const Finding& finding) {
  return finding.sentence() + "\n" + reproduce_line(summary, finding) + "\n" + stacks_text(finding);
}

namespace {

/// Lists the trials whose points did not occur, because the runs differed from the earlier runs,
/// and what these runs did instead. If there are many, lists only some of them.
std::string missed_points(const std::map<size_t, Result>& results) {
  constexpr int kMost = 3;
  std::string text;
  int left = kMost;
  for (const auto& [number, result] : results) {
    if (result.judgment.verdict != Verdict::kNotReached) continue;
    if (left-- == 0) break;
    text += fmt::format("not reached: {}; the program {}\n", result.trial.text(),
                        result.judgment.detail);
  }
  return text;
}

std::string finding_text(const Summary& summary, const Finding& finding) {
  const char* const title = finding.is_repeatable() ? "finding" : "not repeatable";
  std::string text =
      fmt::format("{} {:<2} {:<6} {}{}\n", title, finding.number, name_of(finding.verdict),
                  finding.sentence(), finding.known ? " [known]" : "");
  if (finding.repetitions == 0 || finding.confirmed < finding.repetitions)
    text += "           " + repetitions_text(finding) + "\n";
  return text + fmt::format("  reproduce: {}\n", reproduce_line(summary, finding));
}

Json finding_json(const Summary& summary, const std::map<size_t, Result>& results,
                  const Finding& finding) {
  Json one;
  one["number"] = finding.number;
  one["verdict"] = name_of(finding.verdict);
  one["sentence"] = finding.sentence();
  one["severity"] = severity_of(finding);
  one["place"] = finding.signature;
  one["stacks"] = finding.stacks;
  one["known"] = finding.known;
  one["confirmed"] = finding.confirmed;
  one["repetitions"] = finding.repetitions;
  one["scenario"] = finding.smallest.scenario();
  one["reproduce"] = reproduce_line(summary, finding);
  Json triggers = Json::array();
  for (const size_t trigger : finding.triggers)
    triggers.push_back(results.at(trigger).trial.text());
  one["triggers"] = triggers;
  return one;
}

}  // namespace

std::string repetitions_text(const Finding& finding) {
  if (finding.repetitions == 0) return "was not repeated";
  return fmt::format("confirmed by {} of {} repetition{}", finding.confirmed, finding.repetitions,
                     finding.repetitions == 1 ? "" : "s");
}

std::string counts_text(const Summary& summary, const std::map<size_t, Result>& results) {
  const auto counts = count(results);
  std::string text =
      fmt::format("{} of {} faults at {} fault points in {} classes:", results.size(),
                  summary.trials, summary.points, summary.classes);
  for (size_t i = 0; i < kVerdicts; ++i)
    if (counts[i] != 0) text += fmt::format(" {} {}", counts[i], name_of(static_cast<Verdict>(i)));
  return text;
}

std::string stopped_text(const Summary& summary, const std::vector<Finding>& findings) {
  std::map<std::string, size_t> kinds;
  for (const Trial& trial : summary.not_tried) ++kinds[trial.kind];
  std::string by_kind;
  for (const auto& [kind, number] : kinds)
    by_kind += fmt::format("{}{} {}", by_kind.empty() ? "" : ", ", kind, number);
  std::string text = summary.stopped + ":";
  if (!by_kind.empty())
    text += fmt::format(" {} not tried ({})",
                        summary.not_tried.size() == 1
                            ? "1 fault was"
                            : fmt::format("{} faults were", summary.not_tried.size()),
                        by_kind);
  const auto unrepeated = std::ranges::count(findings, 0, &Finding::repetitions);
  if (unrepeated != 0)
    text += fmt::format("{} {} finding{} not repeated", by_kind.empty() ? "" : ",", unrepeated,
                        unrepeated == 1 ? " was" : "s were");
  if (text.ends_with(':')) text += " not all repetitions were run";
  return text + "; --resume continues from here";
}

std::string report_as_text(const Summary& summary, const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings) {
  std::string text;
  for (const bool repeatable : {true, false})
    for (const Finding& finding : findings)
      if (finding.is_repeatable() == repeatable) text += finding_text(summary, finding);
  const bool wants_stacks = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.verdict == Verdict::kHang || finding.verdict == Verdict::kCrash;
  });
  const bool has_stacks =
      std::ranges::any_of(findings, [](const Finding& finding) { return !finding.stacks.empty(); });
  if (wants_stacks && !has_stacks && !find_stack_tool(StackTool::kEuStack))
    text += fmt::format("no stacks of threads: {}\n", kNoStackTool);
  text += counts_text(summary, results) + "\n";
  text += missed_points(results);
  if (!summary.stopped.empty()) text += stopped_text(summary, findings) + "\n";
  text += fmt::format("report:    {}/report.html\n", summary.folder);
  return text;
}

Json report_as_json(const Summary& summary, const std::map<size_t, Result>& results,
                    const std::vector<Finding>& findings) {
  Json json;
  json["command"] = summary.command;
  json["fault_points"] = summary.points;
  json["classes"] = summary.classes;
  json["faults"] = summary.trials;
  json["run"] = results.size();
  json["baseline_ns"] = summary.baseline_ns;
  json["deterministic"] = summary.deterministic;
  json["stopped"] = summary.stopped;
  const auto counts = count(results);
  Json verdicts = Json::object();
  for (size_t i = 0; i < kVerdicts; ++i)
    verdicts[std::string(name_of(static_cast<Verdict>(i)))] = counts[i];
  json["verdicts"] = verdicts;
  for (const char* list : {"findings", "not_repeatable", "not_tried"}) json[list] = Json::array();
  for (const Finding& finding : findings)
    json[finding.is_repeatable() ? "findings" : "not_repeatable"].push_back(
        finding_json(summary, results, finding));
  for (const Trial& trial : summary.not_tried) json["not_tried"].push_back(trial.text());
  Json all = Json::array();
  for (const auto& [number, result] : results) {
    Json one;
    one["number"] = number;
    one["fault"] = result.trial.text();
    one["at"] = result.trial.kind;
    one["process"] = result.trial.process;
    one["points"] = result.trial.represents;
    one["verdict"] = name_of(result.verdict());
    one["detail"] = result.detail();
    one["status"] = result.facts.status;
    one["virtual_ns"] = result.facts.end_ns;
    all.push_back(one);
  }
  json["results"] = all;
  return json;
}

void write_reports(const fs::path& folder, const Summary& summary,
                   const std::map<size_t, Result>& results, const std::vector<Finding>& findings) {
  write_file(folder / "report.txt", report_as_text(summary, results, findings));
  write_file(folder / "report.json", dump(report_as_json(summary, results, findings)));
  write_file(folder / "report.xml", report_as_junit(summary, results, findings));
  write_file(folder / "report.sarif", dump(as_sarif(summary, findings)));
  write_file(folder / "report.html", report_as_page(folder, summary, results, findings));
}

}  // namespace rocemu::explore
