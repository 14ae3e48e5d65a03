#include "emulator/explore/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rocemu::explore {
namespace {

/// What is the same in all cases that have one cause comes first, then what is easiest to follow:
/// what happens once and early.
auto order_of(const Result& result) {
  const bool once = result.trial.scenario.find("total: 1") != std::string::npos;
  return std::tuple(!once, result.trial.time_ns, result.trial.number);
}

std::string sentence_of(const Result& first, size_t triggers) {
  std::string text = fmt::format("{} after {}", first.judgement.detail, first.trial.text);
  if (triggers > 1) text += fmt::format(" ({} other faults end the same)", triggers - 1);
  return text;
}

}  // namespace

bool is_finding(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHang:
    case Verdict::kCrash:
    case Verdict::kWrong:
    case Verdict::kLeak:
    case Verdict::kSlow:
      return true;
    case Verdict::kSurvived:
    case Verdict::kReported:
    case Verdict::kNotReached:
      return false;
  }
  return false;
}

std::vector<Finding> group(const std::map<size_t, Result>& results) {
  std::map<std::string, std::vector<const Result*>> by_place;
  for (const auto& [number, result] : results) {
    if (!is_finding(result.judgement.verdict)) continue;
    const std::string key =
        std::string(name_of(result.judgement.verdict)) + " " + result.judgement.place;
    by_place[key].push_back(&result);
  }
  std::vector<Finding> findings;
  for (auto& [key, members] : by_place) {
    std::ranges::sort(members, {}, [](const Result* one) { return order_of(*one); });
    const Result& first = *members.front();
    Finding finding;
    finding.verdict = first.judgement.verdict;
    finding.place = key;
    finding.sentence = sentence_of(first, members.size());
    finding.scenario = first.trial.scenario;
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
      case Verdict::kLeak:
        return 3;
      default:
        return 4;
    }
  };
  std::ranges::sort(findings, {}, [&](const Finding& finding) {
    return std::tuple(severity(finding.verdict), finding.triggers.front());
  });
  for (size_t i = 0; i < findings.size(); ++i) findings[i].number = i + 1;
  return findings;
}

}  // namespace rocemu::explore
