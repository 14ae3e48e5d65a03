#include "emulator/explore/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace rocemu::explore {
namespace {

/// Returns whether the cause affects a whole process or device, and not only one object.
bool is_broad(const Cause& cause) {
  return std::ranges::any_of(
      std::to_array<std::string_view>({"do: kill", "do: remove_device", "do: {port:", "do: {gid:"}),
      [&](std::string_view effect) { return cause.rule.find(effect) != std::string::npos; });
}

/// Returns the key by which results are sorted. Trials with fewer causes come first. Among trials
/// with the same number, the first ones are the easiest to understand: their causes act once, on
/// one object, and early.
auto order_of(const Result& result) {
  const Trial& trial = result.trial;
  const bool once = std::ranges::all_of(trial.causes, [](const Cause& cause) {
    return cause.rule.find("total: 1") != std::string::npos;
  });
  const bool broad = std::ranges::any_of(trial.causes, is_broad);
  return std::tuple(trial.causes.size(), !once, broad, trial.time_ns, trial.number);
}

std::string_view verb_in(std::string_view rule) {
  constexpr std::string_view kKey = "verb: ";
  const size_t begin = rule.find(kKey);
  if (begin == std::string_view::npos) return "";
  rule.remove_prefix(begin + kKey.size());
  return rule.substr(0, rule.find_first_of(",}"));
}

/// Returns whether the sanitizer's report only repeats what the trial's fault did: a verb failed,
/// or a CQ overran.
bool is_fault(const Misuse& misuse, const Trial& trial) {
  return std::ranges::any_of(trial.causes, [&](const Cause& cause) {
    if (cause.rule.find("do: overrun") != std::string::npos) return misuse.rule == "cq-overrun";
    return cause.rule.find("errno:") != std::string::npos && !misuse.refused.empty() &&
           verb_in(cause.rule) == misuse.refused;
  });
}

Finding finding_of(const Judgment& judgment) {
  Finding finding;
  finding.verdict = judgment.verdict;
  finding.signature = signature_of(judgment);
  finding.stacks = judgment.stacks;
  finding.detail = judgment.detail;
  finding.is_warning = judgment.is_warning;
  return finding;
}

}  // namespace

Verdict Result::verdict() const {
  return is_finding(judgment.verdict) || misuses.empty() ? judgment.verdict : Verdict::kMisuse;
}

std::string Result::detail() const {
  std::string text = judgment.detail;
  for (const Judgment& misuse : misuses) text += (text.empty() ? "" : "; ") + misuse.detail;
  return text;
}

std::vector<Judgment> Result::found() const {
  std::vector<Judgment> all;
  if (is_finding(judgment.verdict)) all.push_back(judgment);
  all.insert(all.end(), misuses.begin(), misuses.end());
  return all;
}

Result judged(const Trial& trial, const RunFacts& facts, const Baseline& baseline,
              const Limits& limits) {
  std::vector<Misuse> own;
  for (const Misuse& misuse : facts.misuses)
    if (!is_fault(misuse, trial)) own.push_back(misuse);
  Result result{trial, facts, judge(facts, baseline, limits), misuses_of(own)};
  std::erase_if(result.misuses, [&](const Judgment& one) {
    return std::ranges::find(baseline.misuses, one.signature, &Judgment::signature) !=
           baseline.misuses.end();
  });
  return result;
}

bool has_again(const Finding& finding, const RunFacts& facts, const Baseline& baseline,
               const Limits& limits) {
  if (finding.verdict != Verdict::kMisuse)
    return signature_of(judge(facts, baseline, limits)) == finding.signature;
  const std::vector<Judgment> misuses = misuses_of(facts.misuses);
  return std::ranges::find(misuses, finding.signature, signature_of) != misuses.end();
}

std::string Finding::sentence() const {
  const char* const comma = verdict == Verdict::kMisuse ? "," : "";
  if (smallest.is_undisturbed()) return detail + comma + " without any fault";
  const char* const how = !smallest.variation.empty() ? "when" : "after";
  std::string text = fmt::format("{}{} {} {}", detail, comma, how, smallest.text());
  const size_t others = triggers.size() - 1;
  const bool is_misuse = verdict == Verdict::kMisuse;
  const char* const what = smallest.variation.empty() ? "fault" : "run";
  if (others == 1)
    text += fmt::format(" (1 other {} {})", what, is_misuse ? "leads to it" : "ends the same");
  else if (others > 1)
    text +=
        fmt::format(" ({} other {}s {})", others, what, is_misuse ? "lead to it" : "end the same");
  return text;
}

std::string signature_of(const Judgment& judgment) {
  return std::string(name_of(judgment.verdict)) + " " + judgment.signature;
}

bool is_finding(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHang:
    case Verdict::kCrash:
    case Verdict::kWrong:
    case Verdict::kLeak:
    case Verdict::kSlow:
    case Verdict::kMisuse:
      return true;
    case Verdict::kSurvived:
    case Verdict::kReported:
    case Verdict::kNotReached:
      return false;
  }
  return false;
}

std::vector<Finding> group(const std::map<size_t, Result>& results,
                           const std::vector<Judgment>& baseline_misuses) {
  // The key that identifies a finding: runs with different adversarial classes have different
  // findings.
  using Key = std::tuple<std::string, std::vector<std::string>, std::string>;
  std::map<Key, std::vector<const Result*>> by_place;
  for (const auto& [number, result] : results)
    for (const Judgment& one : result.found())
      by_place[{signature_of(one), one.stacks, result.trial.variation.adversarial_class()}]
          .push_back(&result);
  std::vector<Finding> findings;
  for (const Judgment& misuse : baseline_misuses) findings.push_back(finding_of(misuse));
  for (auto& [key, members] : by_place) {
    std::ranges::sort(members, {}, [](const Result* one) { return order_of(*one); });
    const Result& first = *members.front();
    const std::vector<Judgment> of_first = first.found();
    Finding finding = finding_of(*std::ranges::find(of_first, std::get<0>(key), signature_of));
    finding.smallest = first.trial;
    for (const Result* one : members) finding.triggers.push_back(one->trial.number);
    findings.push_back(std::move(finding));
  }
  const auto severity = [](Verdict verdict) {
    switch (verdict) {
      case Verdict::kCrash:
        return 0;
      case Verdict::kHang:
        return 1;
      case Verdict::kWrong:
        return 2;
      case Verdict::kMisuse:
        return 3;
      case Verdict::kLeak:
        return 4;
      default:
        return 5;
    }
  };
  std::ranges::stable_sort(findings, {}, [&](const Finding& finding) {
    const size_t first = finding.triggers.empty() ? 0 : finding.triggers.front();
    return std::tuple(severity(finding.verdict), finding.is_warning, first);
  });
  for (size_t i = 0; i < findings.size(); ++i) findings[i].number = i + 1;
  return findings;
}

}  // namespace rocemu::explore
