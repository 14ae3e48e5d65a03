#include "emulator/explore/trials/trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::explore {
namespace {

std::string rule_for(const FaultPoint& point, const Fault& fault) {
  const bool for_ever = fault.times == Times::kForEver;
  std::string rule = fmt::format("{{on: {}, {}", name_of(point.kind), point.place);
  const char* const from_then_on = for_ever ? "-" : "";
  if (point.nth != 0) rule += fmt::format(", nth: {}{}", point.nth, from_then_on);
  if (point.nth_total != 0) rule += fmt::format(", nth_total: {}{}", point.nth_total, from_then_on);
  if (!for_ever) rule += ", total: 1";
  return fmt::format("{}, do: {}}}", rule, fault.effect);
}

}  // namespace

std::string Trial::text() const {
  if (!variation.empty()) return variation.text();
  if (causes.empty()) return "no fault";
  std::string text;
  const char* const between = follows != 0 ? ", and then " : ", and ";
  for (const Cause& cause : causes) text += (text.empty() ? "" : between) + cause.text;
  return text;
}

std::string Trial::scenario() const {
  std::string rules;
  for (const Cause& cause : causes) rules += "  - " + cause.rule + "\n";
  std::string options;
  for (const std::string& one : variation.added_to({})) options += " " + one;
  if (!options.empty()) options = "#" + options + "\n";
  return fmt::format("# {}\n{}rules:{}{}", text(), options, rules.empty() ? " []" : "",
                     "\n" + rules);
}

std::string Trial::repetition_key(int repetition) const {
  return fmt::format("again {} {}", repetition, scenario());
}

Json Trial::to_json() const {
  Json list = Json::array();
  for (const Cause& cause : causes)
    list.push_back(Json{{"text", cause.text}, {"rule", cause.rule}});
  Json json{{"number", number},
            {"causes", list},
            {"kind", kind},
            {"name", name},
            {"process", process},
            {"time_ns", time_ns},
            {"represents", represents},
            {"follows", follows}};
  variation.to_json(json);
  return json;
}

Trial Trial::from_json(const Json& json) {
  Trial trial;
  json.at("number").get_to(trial.number);
  for (const Json& cause : json.at("causes"))
    trial.causes.push_back({cause.at("text"), cause.at("rule")});
  trial.variation = Variation::from_json(json);
  json.at("kind").get_to(trial.kind);
  json.at("name").get_to(trial.name);
  json.at("process").get_to(trial.process);
  json.at("time_ns").get_to(trial.time_ns);
  json.at("represents").get_to(trial.represents);
  json.at("follows").get_to(trial.follows);
  return trial;
}

std::vector<Trial> plan(const std::vector<FaultPoint>& points) {
  struct Ordered {
    uint64_t rank;
    Trial trial;
  };
  std::vector<Ordered> all;
  for (const FaultPoint& point : points) {
    for (const Fault& fault : faults_for(point)) {
      Trial trial;
      trial.causes = {{text_of(point, fault), rule_for(point, fault)}};
      trial.kind = name_of(point.kind);
      trial.name = point.name;
      trial.process = point.process;
      trial.time_ns = point.time_ns;
      trial.represents = point.represents;
      all.push_back({point.rank, std::move(trial)});
    }
  }
  std::ranges::stable_sort(all, {}, &Ordered::rank);
  std::vector<Trial> trials;
  for (Ordered& one : all) {
    one.trial.number = trials.size() + 1;
    trials.push_back(std::move(one.trial));
  }
  return trials;
}

}  // namespace rocemu::explore
