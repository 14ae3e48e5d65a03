#include "emulator/daemon/control/fault_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/daemon/control/control_request.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::daemon {
namespace {

Json inject(EngineHost& host, const std::vector<std::string>& devices,
            const engine::NetworkPlan* network, const Json& request) {
  const auto rule = text_of(request, "rule");
  const auto scenario = text_of(request, "scenario");
  if (rule.has_value() == scenario.has_value()) {
    throw ControlServer::Refusal(R"(either "rule" or "scenario" must be given)");
  }
  try {
    std::vector<std::string> warnings;
    std::shared_ptr<const engine::faults::RuleSet> rules;
    if (rule) {
      rules = scenario::parse_rule(*rule, &warnings);
    } else {
      scenario::Scenario parsed = scenario::parse_scenario(*scenario, "scenario");
      rules = std::move(parsed.rules);
      warnings = std::move(parsed.warnings);
    }
    const char* const origin = rule ? "rule" : "scenario";
    scenario::check_devices(*rules, devices, origin);
    scenario::check_network(*rules, network, origin);
    host.submit(engine::AddRules{rules});
    Json json;
    Json& names = json["rules"] = Json::array();
    for (const auto& one : rules->rules) names.push_back(one.name);
    if (!warnings.empty()) json["warnings"] = warnings;
    return json;
  } catch (const scenario::ScenarioError& error) {
    throw ControlServer::Refusal(error.what());
  }
}

Json rules_json(const EngineHost& host) {
  Json json;
  Json& list = json["rules"] = Json::array();
  for (const engine::faults::RuleReport& report : host.engine().rule_reports()) {
    Json one;
    one["name"] = report.name;
    one["on"] = scenario::name_of(report.where);
    one["matched"] = report.matched;
    one["fired"] = report.fired;
    list.push_back(std::move(one));
  }
  return json;
}

Json clear(EngineHost& host, const Json& request) {
  const auto name = text_of(request, "name");
  if (name) {
    const auto reports = host.engine().rule_reports();
    if (std::ranges::find(reports, *name, &engine::faults::RuleReport::name) == reports.end()) {
      throw ControlServer::Refusal(fmt::format("there is no rule '{}'", *name));
    }
  }
  host.submit(engine::RemoveRules{name});
  return Json::object();
}

}  // namespace

ControlServer::Commands fault_commands(EngineHost& host,
                                       const std::vector<std::string>& device_names,
                                       const std::shared_ptr<const engine::NetworkPlan>& network) {
  const auto set_paused = [&host](bool paused) {
    host.submit(engine::Pause{paused});
    return Json::object();
  };
  return {
      {"inject", taking({"rule", "scenario"},
                        [&host, device_names, network](const Json& request) {
                          return inject(host, device_names, network.get(), request);
                        })},
      {"rules", taking({}, [&host](const Json&) { return rules_json(host); })},
      {"clear", taking({"name"}, [&host](const Json& request) { return clear(host, request); })},
      {"pause", taking({}, [set_paused](const Json&) { return set_paused(true); })},
      {"resume", taking({}, [set_paused](const Json&) { return set_paused(false); })},
  };
}

}  // namespace rocemu::daemon
