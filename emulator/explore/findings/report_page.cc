#include "emulator/explore/findings/report_page.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;

// Long words, such as a command without a blank, are broken, so that everything fits a narrow
// screen.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rocemu explore</title>
<style>
:root{color-scheme:light dark;--page:#fff;--text:#1c2127;--quiet:#59636e;--box:#f3f5f7;--line:#cfd6dd;
--link:#0a58b0;--bad:#b3201a;--warn:#8a5300;--good:#18702f}
@media (prefers-color-scheme:dark){:root{--page:#14181d;--text:#e4e8ec;--quiet:#9aa6b2;--box:#20262d;
--line:#3b444e;--link:#76b0f5;--bad:#ff8a80;--warn:#f0b357;--good:#7ed491}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:62em;margin:0 auto;padding:1em;
background:var(--page);color:var(--text);overflow-wrap:anywhere}
h1{font-size:1.5em;margin:.4em 0}h2{font-size:1.2em;margin:1.6em 0 .4em}h3{font-size:1.05em;margin:0}
a{color:var(--link)}
pre{background:var(--box);border:1px solid var(--line);border-radius:4px;padding:.6em;margin:.5em 0;
font-size:.85em;white-space:pre-wrap}
article{border:1px solid var(--line);border-radius:6px;padding:.8em;margin:1em 0}
article p{margin:.4em 0}
summary{cursor:pointer}
ul{padding-left:1.2em;margin:.4em 0}
.quiet{color:var(--quiet)}
.HANG,.CRASH,.WRONG,.MISUSE{color:var(--bad);font-weight:600}
.LEAK,.SLOW,.NOT{color:var(--warn);font-weight:600}
.SURVIVED,.REPORTED{color:var(--good)}
.files a{margin-right:1em;white-space:nowrap}
table{border-collapse:collapse;width:100%;font-size:.9em}
td,th{border-bottom:1px solid var(--line);padding:.3em .5em;text-align:left;vertical-align:top}
td.verdict{white-space:nowrap}
@media (max-width:40em){tr,td{display:block;border:0;padding:.1em 0}thead{display:none}
tr{border-bottom:1px solid var(--line);padding:.4em 0}}
</style></head><body>
)";

/// The files of a finding's folder, and their names on the page
constexpr std::array<std::pair<const char*, const char*>, 9> kFiles = {{
    {"timeline.html", "timeline"},
    {"scenario.yaml", "scenario"},
    {"events.jsonl", "recording"},
    {"trace.pcap", "frames"},
    {"stdout", "standard output"},
    {"stderr", "standard error"},
    {"stacks.txt", "stacks"},
    {kMisuseFile, "misuses"},
    {"report.txt", "report"},
}};

/// Returns the verdict as a span with a CSS class. "NOT REACHED" becomes two classes; the class NOT
/// has the color.
std::string verdict_html(Verdict verdict) {
  return fmt::format("<span class=\"{0}\">{0}</span>", name_of(verdict));
}

std::string links(const fs::path& folder, const Finding& finding) {
  std::string text;
  for (const auto& [file, name] : kFiles) {
    const std::string path = fmt::format("{}/{}", finding.number, file);
    std::error_code ignored;
    if (fs::exists(folder / path, ignored))
      text += fmt::format("<a href=\"{}\">{}</a>\n", path, name);
  }
  return text.empty() ? "" : "<p class=\"files\">" + text + "</p>\n";
}

std::string list_html(const std::string& title, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string text = fmt::format("<details><summary>{}</summary><ul>\n", escaped(title));
  for (const std::string& one : texts) text += "<li>" + escaped(one) + "</li>\n";
  return text + "</ul></details>\n";
}

std::string finding_html(const fs::path& folder, const Summary& summary,
                         const std::map<size_t, Result>& results, const Finding& finding) {
  std::string text = fmt::format("<article id=\"finding-{0}\"><h3>{0}: {1}{2}</h3>\n<p>{3}</p>\n",
                                 finding.number, verdict_html(finding.verdict),
                                 finding.known ? " <span class=\"quiet\">known</span>" : "",
                                 escaped(finding.sentence()));
  text += "<p class=\"quiet\">" + escaped(repetitions_text(finding)) + "</p>\n";
  text += links(folder, finding);
  text += fmt::format("<pre>{}</pre>\n", escaped(reproduce_line(summary, finding)));
  if (!finding.smallest.causes.empty())
    text += fmt::format("<pre>{}</pre>\n", escaped(finding.smallest.scenario()));
  if (!finding.stacks.empty())
    text += fmt::format("<pre>{}</pre>\n", escaped(stacks_text(finding)));
  std::vector<std::string> triggers;
  for (const size_t trigger : finding.triggers)
    triggers.push_back(results.at(trigger).trial.text());
  if (triggers.size() > 1)
    text += list_html(fmt::format("All {} faults that end in this way", triggers.size()), triggers);
  return text + "</article>\n";
}

std::string table_html(const std::map<size_t, Result>& results) {
  std::string text = fmt::format(
      "<h2>Verdict on each fault</h2>\n<details><summary>{} faults</summary>\n<table><thead>"
      "<tr><th>fault</th><th>verdict</th><th>how it ended</th></tr></thead>\n",
      results.size());
  for (const auto& [number, result] : results)
    text += fmt::format("<tr><td>{}</td><td class=\"verdict\">{}</td><td>{}</td></tr>\n",
                        escaped(result.trial.text()), verdict_html(result.verdict()),
                        escaped(result.detail()));
  return text + "</table></details>\n";
}

}  // namespace

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

std::string report_as_page(const fs::path& folder, const Summary& summary,
                           const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings) {
  std::string text(kHead);
  text +=
      fmt::format("<h1>rocemu explore</h1>\n<pre>{}</pre>\n", escaped(shell_text(summary.command)));
  text += fmt::format("<p>{}</p>\n", escaped(counts_text(summary, results)));
  if (!summary.stopped.empty())
    text += fmt::format("<p class=\"NOT\">{}</p>\n", escaped(stopped_text(summary, findings)));
  const auto add = [&](const char* title, bool repeatable) {
    std::string some;
    for (const Finding& finding : findings)
      if (finding.is_repeatable() == repeatable)
        some += finding_html(folder, summary, results, finding);
    if (!some.empty()) text += fmt::format("<h2>{}</h2>\n", title) + some;
  };
  add("Findings", true);
  add("Not repeatable", false);
  text += table_html(results);
  std::vector<std::string> not_tried;
  for (const Trial& trial : summary.not_tried) not_tried.push_back(trial.text());
  text += list_html(fmt::format("{} faults were not tried", not_tried.size()), not_tried);
  return text + "</body></html>\n";
}

}  // namespace rocemu::explore
