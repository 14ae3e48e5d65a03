#include "emulator/command/sanitizer/finding_files.h"

#include <algorithm>
#include <cstdio>

#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/sanitizer/finding_text.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {
namespace {

using sanitizer::Rule;
using sanitizer::Severity;

// ---- JSON ----

Json json_of(const StackFrame& frame) {
  return {{"function", frame.function},
          {"file", frame.file},
          {"line", frame.line},
          {"module", frame.module}};
}

Json json_of(const FoundCallSite& site) {
  Json stack = Json::array();
  for (const StackFrame& frame : site.stack) stack.push_back(json_of(frame));
  return {{"what", site.what}, {"call", site.call}, {"time", site.time_s}, {"stack", stack}};
}

Json json_of(const std::vector<Misuse>& findings) {
  Json reports = Json::array();
  for (const Misuse& finding : findings) {
    Json places = Json::array();
    for (const FoundCallSite& site : finding.sites) places.push_back(json_of(site));
    reports.push_back({{"rule", finding.rule->id},
                       {"severity", name_of(finding.rule->severity)},
                       {"message", finding.message},
                       {"process", finding.process},
                       {"places", places},
                       {"count", finding.count}});
  }
  return {{"reports", reports}};
}

// ---- SARIF 2.1.0 ----

/// Returns the path for a URI, with percent-encoding of the characters that RFC 3986 does not allow
/// in a path. The result is relative if the path is below `root`, else absolute.
std::string uri_of(std::string path, const std::string& root) {
  if (path.starts_with(root + "/")) path.erase(0, root.size() + 1);
  std::string uri = path.starts_with("/") ? "file://" : "";
  constexpr std::string_view kKept = "-._~/+@,=!$&'()*;";
  for (const char c : path) {
    const auto code = static_cast<unsigned char>(c);
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || kKept.find(c) != std::string_view::npos;
    if (is_plain) {
      uri += c;
    } else {
      char escape[4];
      std::snprintf(escape, sizeof escape, "%%%02X", code);
      uri += escape;
    }
  }
  return uri;
}

/// Returns the call site as a SARIF location. Without debug information, the location is only the
/// program or library.
Json location_of(const FoundCallSite& site, const std::string& root) {
  if (site.stack.empty()) return nullptr;
  const StackFrame& frame = site.stack.front();
  const bool is_known = frame.line != 0;
  Json location = {
      {"physicalLocation",
       {{"artifactLocation", {{"uri", uri_of(is_known ? frame.file : frame.module, root)}}},
        {"region", {{"startLine", is_known ? frame.line : 1}}}}},
      {"message", {{"text", site.what + " by " + site.call}}}};
  if (!frame.function.empty())
    location["logicalLocations"] = Json::array({{{"fullyQualifiedName", frame.function}}});
  return location;
}

Json rules_of_driver() {
  Json all = Json::array();
  for (const Rule* rule : sanitizer::rules())
    all.push_back(
        {{"id", rule->id},
         {"shortDescription", {{"text", rule->summary}}},
         {"help", {{"text", std::string(rule->remedy) + " (" + std::string(rule->clause) + ")"}}},
         {"defaultConfiguration", {{"level", name_of(rule->severity)}}}});
  return all;
}

Json sarif_of(const Misuse& finding, const std::string& root) {
  const auto rules = sanitizer::rules();
  Json result = {{"ruleId", finding.rule->id},
                 {"ruleIndex", std::ranges::find(rules, finding.rule) - rules.begin()},
                 {"level", name_of(finding.rule->severity)},
                 {"message", {{"text", finding.message}}},
                 {"occurrenceCount", finding.count},
                 {"locations", Json::array()},
                 {"relatedLocations", Json::array()}};
  // The last call site is that of the mistake. SARIF 2.1.0 requires that the related locations,
  // which are those of the other call sites, are unique.
  std::vector<Json> locations;
  for (const FoundCallSite& site : finding.sites)
    if (Json location = location_of(site, root); !location.is_null())
      locations.push_back(std::move(location));
  if (locations.empty()) return result;
  result["locations"].push_back(locations.back());
  locations.pop_back();
  Json& related = result["relatedLocations"];
  for (Json& location : locations)
    if (std::ranges::find(related, location) == related.end()) related.push_back(location);
  return result;
}

Json sarif_of(const std::vector<Misuse>& findings, const std::string& root) {
  Json results = Json::array();
  for (const Misuse& finding : findings) results.push_back(sarif_of(finding, root));
  const Json driver = {
      {"name", "rocemu"}, {"version", ROCEMU_VERSION}, {"rules", rules_of_driver()}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({{{"tool", {{"driver", driver}}}, {"results", results}}})}};
}

// ---- JUnit ----

/// Returns the text with escapes for XML 1.0, and without the characters that XML cannot represent.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += "&#10;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

/// Returns a finding as a test case of JUnit. A test with an error fails; a test with a warning
/// passes, and has the finding as its output.
std::string junit_of(const Misuse& finding) {
  const bool is_error = finding.rule->severity == Severity::kError;
  const std::string text = escaped(in_words(finding));
  return "    <testcase classname=\"rocemu.sanitize." + escaped(finding.rule->id) + "\" name=\"" +
         escaped(finding.message) + "\">" +
         (is_error ? "<failure type=\"" + escaped(finding.rule->id) + "\" message=\"" +
                         escaped(finding.message) + "\">" + text + "</failure>"
                   : "<system-out>" + text + "</system-out>") +
         "</testcase>\n";
}

std::string junit_of(const std::vector<Misuse>& findings) {
  const auto errors = std::ranges::count_if(
      findings, [](const Misuse& one) { return one.rule->severity == Severity::kError; });
  const std::string counts = " tests=\"" + std::to_string(std::max<size_t>(findings.size(), 1)) +
                             "\" failures=\"" + std::to_string(errors) + "\" errors=\"0\"";
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts +
                     ">\n  <testsuite name=\"rocemu --sanitize\"" + counts + ">\n";
  for (const Misuse& finding : findings) text += junit_of(finding);
  if (findings.empty())
    text += "    <testcase classname=\"rocemu.sanitize\" name=\"no wrong use of verbs\"/>\n";
  return text + "  </testsuite>\n</testsuites>\n";
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

ReportFormat report_format(const std::string& file) {
  if (file.ends_with(".json")) return ReportFormat::kJson;
  if (file.ends_with(".sarif")) return ReportFormat::kSarif;
  if (file.ends_with(".xml")) return ReportFormat::kJunit;
  throw UsageError("--sanitize-report " + file +
                   " has an unknown extension; use FILE.json, FILE.sarif or FILE.xml");
}

std::string to_text(const std::vector<Misuse>& findings, ReportFormat format,
                    const std::string& root) {
  switch (format) {
    case ReportFormat::kJson:
      return dumped(json_of(findings));
    case ReportFormat::kSarif:
      return dumped(sarif_of(findings, root));
    case ReportFormat::kJunit:
      return junit_of(findings);
  }
  return "";
}

}  // namespace rocemu::command
