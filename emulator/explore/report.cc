#include "emulator/explore/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "emulator/explore/files.h"
#include "emulator/os/stacks.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;

std::array<size_t, kVerdicts> count(const std::map<size_t, Result>& results) {
  std::array<size_t, kVerdicts> counts{};
  for (const auto& [number, result] : results)
    ++counts[static_cast<size_t>(result.judgement.verdict)];
  return counts;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// For XML and HTML. Control characters, which XML forbids, go.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string as_junit(const Summary& summary, const std::map<size_t, Result>& results,
                     const std::vector<Finding>& findings) {
  size_t failures = 0;
  std::string cases;
  std::map<size_t, const Finding*> finding_of;
  for (const Finding& finding : findings)
    for (const size_t trigger : finding.triggers) finding_of[trigger] = &finding;
  for (const auto& [number, result] : results) {
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", result.trial.kind,
                         escaped(result.trial.text()));
    const auto found = finding_of.find(number);
    if (found == finding_of.end() || found->second->known) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    cases += fmt::format(
        ">\n      <failure type=\"{}\" message=\"{}\">finding {}\n{}\n</failure>\n    "
        "</testcase>\n",
        name_of(result.judgement.verdict), escaped(result.judgement.detail), found->second->number,
        escaped(reproduce_line(summary, *found->second)));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"rocemu "
      "explore\" tests=\"{}\" failures=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      results.size(), failures, cases);
}

Json as_sarif(const Summary& summary, const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    if (finding.known) continue;
    Json one;
    one["ruleId"] = name_of(finding.verdict);
    one["level"] = finding.verdict == Verdict::kLeak || finding.verdict == Verdict::kSlow
                       ? "warning"
                       : "error";
    one["message"]["text"] =
        finding.sentence() + "\nreproduce: " + reproduce_line(summary, finding);
    Json location;
    location["physicalLocation"]["artifactLocation"]["uri"] =
        fmt::format("{}/{}/scenario.yaml", summary.folder, finding.number);
    one["locations"] = Json::array({location});
    one["partialFingerprints"]["place/v1"] = finding.place;
    list.push_back(one);
  }
  Json rules = Json::array();
  for (const Verdict verdict :
       {Verdict::kHang, Verdict::kCrash, Verdict::kWrong, Verdict::kLeak, Verdict::kSlow})
    rules.push_back(Json{{"id", name_of(verdict)}});
  Json run;
  run["tool"]["driver"] =
      Json{{"name", "rocemu explore"}, {"version", ROCEMU_VERSION}, {"rules", rules}};
  run["results"] = list;
  return Json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", Json::array({run})}};
}

std::string as_html(const Summary& summary, const std::map<size_t, Result>& results,
                    const std::vector<Finding>& findings) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>rocemu explore"
      "</title><style>body{font:15px sans-serif;max-width:60em;margin:2em auto}pre{background:#eee"
      ";padding:.6em;overflow-x:auto}table{border-collapse:collapse}td,th{border:1px solid #bbb;"
      "padding:.2em .5em;text-align:left}</style></head><body>\n";
  text += fmt::format("<h1>rocemu explore</h1>\n<pre>{}</pre>\n",
                      escaped(report_as_text(summary, results, findings)));
  for (const Finding& finding : findings) {
    text += fmt::format("<h2>{}: {}</h2>\n<p>{}</p>\n<pre>{}</pre>\n<pre>{}</pre>\n",
                        finding.number, name_of(finding.verdict), escaped(finding.sentence()),
                        escaped(finding.smallest.scenario()),
                        escaped(reproduce_line(summary, finding)));
    if (!finding.stacks.empty())
      text += fmt::format("<pre>{}</pre>\n", escaped(stacks_text(finding)));
    text += "<ul>\n";
    for (const size_t trigger : finding.triggers)
      text += fmt::format("<li>{}</li>\n", escaped(results.at(trigger).trial.text()));
    text += "</ul>\n";
  }
  text += "<h2>All faults</h2>\n<table><tr><th>fault</th><th>verdict</th><th></th></tr>\n";
  for (const auto& [number, result] : results)
    text +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(result.trial.text()),
                    name_of(result.judgement.verdict), escaped(result.judgement.detail));
  return text + "</table></body></html>\n";
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
  const uint64_t schedule = finding.smallest.schedule;
  if (schedule != 0)
    options.insert(options.end(), {"--schedule", std::to_string(schedule)});
  else
    options.insert(options.end(), {"--scenario", fmt::format("{}/{}/scenario.yaml", summary.folder,
                                                             finding.number)});
  return fmt::format("rocemu run {} -- {}", shell_text(options), shell_text(summary.command));
}

std::string stacks_text(const Finding& finding) {
  std::string text;
  for (const std::string& stack : finding.stacks) text += "  stack: " + stack + "\n";
  return text;
}

namespace {

/// The runs that were not what they had been, and what they did instead; of many some.
std::string missed_points(const std::map<size_t, Result>& results) {
  constexpr int kMost = 3;
  std::string text;
  int left = kMost;
  for (const auto& [number, result] : results) {
    if (result.judgement.verdict != Verdict::kNotReached) continue;
    if (left-- == 0) break;
    text += fmt::format("not reached: {}; the program {}\n", result.trial.text(),
                        result.judgement.detail);
  }
  return text;
}

}  // namespace

std::string report_as_text(const Summary& summary, const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("finding {:<2} {:<6} {}{}\n", finding.number, name_of(finding.verdict),
                        finding.sentence(), finding.known ? " [known]" : "");
    if (finding.confirmed < finding.repetitions)
      text += fmt::format("           confirmed by {} of {} repetitions\n", finding.confirmed,
                          finding.repetitions);
    text += fmt::format("  reproduce: {}\n", reproduce_line(summary, finding));
  }
  const bool wants_stacks = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.verdict == Verdict::kHang || finding.verdict == Verdict::kCrash;
  });
  const bool has_stacks =
      std::ranges::any_of(findings, [](const Finding& finding) { return !finding.stacks.empty(); });
  if (wants_stacks && !has_stacks && !find_stack_tool(StackTool::kEuStack))
    text += fmt::format("no stacks of threads: {}\n", kNoStackTool);
  const auto counts = count(results);
  text += fmt::format("{} of {} faults at {} fault points in {} classes:", results.size(),
                      summary.trials, summary.points, summary.classes);
  for (size_t i = 0; i < kVerdicts; ++i)
    if (counts[i] != 0) text += fmt::format(" {} {}", counts[i], name_of(static_cast<Verdict>(i)));
  text += "\n";
  text += missed_points(results);
  if (!summary.stopped.empty())
    text += fmt::format("{}; --resume goes on from here\n", summary.stopped);
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
  Json list = Json::array();
  for (const Finding& finding : findings) {
    Json one;
    one["number"] = finding.number;
    one["verdict"] = name_of(finding.verdict);
    one["sentence"] = finding.sentence();
    one["place"] = finding.place;
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
    list.push_back(one);
  }
  json["findings"] = list;
  Json all = Json::array();
  for (const auto& [number, result] : results) {
    Json one;
    one["number"] = number;
    one["fault"] = result.trial.text();
    one["at"] = result.trial.kind;
    one["process"] = result.trial.process;
    one["points"] = result.trial.represents;
    one["verdict"] = name_of(result.judgement.verdict);
    one["detail"] = result.judgement.detail;
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
  write_file(folder / "report.xml", as_junit(summary, results, findings));
  write_file(folder / "report.sarif", dump(as_sarif(summary, findings)));
  write_file(folder / "report.html", as_html(summary, results, findings));
}

}  // namespace rocemu::explore
