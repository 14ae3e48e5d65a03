#include "emulator/explore/findings/report_junit.h"

#include <fmt/format.h>

#include "emulator/explore/findings/report_page.h"

namespace rocemu::explore {
namespace {

class Cases {
 public:
  explicit Cases(const Summary& summary) : summary_(summary) {}

  /// Adds a test for a trial. `findings` are the findings that the trial triggers, without known
  /// ones.
  void add(const Trial& trial, const std::vector<const Finding*>& findings) {
    ++count_;
    text_ += fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                         trial.is_undisturbed() ? "baseline" : trial.kind, escaped(trial.text()));
    const std::string inside = result_of(findings);
    text_ += inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n";
  }

  std::string document() const {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"rocemu "
        "explore\" tests=\"{}\" failures=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
        count_, failures_, text_);
  }

 private:
  /// Returns the XML elements of a test's result. JUnit has only one result for each test, so a
  /// failure takes precedence over other results.
  std::string result_of(const std::vector<const Finding*>& findings) {
    const Finding *failure = nullptr, *unsure = nullptr;
    std::string failed, warned;
    for (const Finding* one : findings) {
      if (!one->is_repeatable()) {
        unsure = one;
      } else if (one->is_warning) {
        warned += text_of(*one);
      } else {
        if (failure == nullptr) failure = one;
        failed += text_of(*one);
      }
    }
    if (failure != nullptr) {
      ++failures_;
      return fmt::format("\n      <failure type=\"{}\" message=\"{}\">{}{}</failure>\n    ",
                         name_of(failure->verdict), escaped(failure->detail), escaped(failed),
                         escaped(warned));
    }
    if (!warned.empty()) return fmt::format("<system-out>{}</system-out>", escaped(warned));
    if (unsure == nullptr) return "";
    return fmt::format("<skipped message=\"{}: {}\"/>", name_of(unsure->verdict),
                       escaped(repetitions_text(*unsure)));
  }

  std::string text_of(const Finding& finding) const {
    return fmt::format("finding {}: {}\n{}\n", finding.number, finding.detail,
                       reproduce_line(summary_, finding));
  }

  const Summary& summary_;
  std::string text_;
  size_t count_ = 0, failures_ = 0;
};

}  // namespace

std::string report_as_junit(const Summary& summary, const std::map<size_t, Result>& results,
                            const std::vector<Finding>& findings) {
  constexpr size_t kBaseline = 0;  // trials count from 1
  std::map<size_t, std::vector<const Finding*>> findings_of;
  for (const Finding& finding : findings) {
    if (finding.known) continue;
    if (finding.triggers.empty()) findings_of[kBaseline].push_back(&finding);
    for (const size_t trigger : finding.triggers) findings_of[trigger].push_back(&finding);
  }
  Cases cases(summary);
  if (findings_of.contains(kBaseline)) cases.add(Trial(), findings_of[kBaseline]);
  for (const auto& [number, result] : results) cases.add(result.trial, findings_of[number]);
  return cases.document();
}

}  // namespace rocemu::explore
