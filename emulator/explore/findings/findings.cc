#include "emulator/explore/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace rocemu::explore {
namespace {

/// Whether it befalls all that a process or a device does.
bool is_broad(const Cause& cause) {
  return std::ranges::any_of(
      std::to_array<std::string_view>({"do: kill", "do: remove_device", "do: {port:", "do: {gid:"}),
      [&](std::string_view effect) { return cause.rule.find(effect) != std::string::npos; });
}

/// What is the same in all cases that have one cause comes first, then what is easiest to follow:
/// what happens once, to one thing, and early.
auto order_of(const Result& result) {
  const Trial& trial = result.trial;
  const bool once = std::ranges::all_of(trial.causes, [](const Cause& cause) {
    return cause.rule.find("total: 1") != std::string::npos;
  });
  const bool broad = std::ranges::any_of(trial.causes, is_broad);
  return std::tuple(trial.causes.size(), !once, broad, trial.time_ns, trial.number);
}

}  // namespace

std::string Finding::sentence() const {
  const char* const how = smallest.schedule != 0 ? "when" : "after";
  std::string text = fmt::format("{} {} {}", detail, how, smallest.text());
  if (triggers.size() > 1)
    text += triggers.size() == 2
                ? " (1 other fault ends the same)"
                : fmt::format(" ({} other faults end the same)", triggers.size() - 1);
  return text;
}

std::string place_of(const Judgement& judgement) {
  return std::string(name_of(judgement.verdict)) + " " + judgement.place;
}

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
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<const Result*>> by_place;
  for (const auto& [number, result] : results) {
    if (!is_finding(result.judgement.verdict)) continue;
    by_place[{place_of(result.judgement), result.judgement.stacks}].push_back(&result);
  }
  std::vector<Finding> findings;
  for (auto& [key, members] : by_place) {
    std::ranges::sort(members, {}, [](const Result* one) { return order_of(*one); });
    const Result& first = *members.front();
    Finding finding;
    finding.verdict = first.judgement.verdict;
    std::tie(finding.place, finding.stacks) = key;
    finding.detail = first.judgement.detail;
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
