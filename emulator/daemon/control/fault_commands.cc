#include "emulator/daemon/control/fault_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "emulator/daemon/control/control_request.h"
#include "emulator/scenario/scenario.h"
#include "wire/packet.h"
#include "wire/print.h"

namespace rocemu::daemon {
namespace {

constexpr uint64_t kMaxFrames = 1000;

Json inject(EngineHost& host, const std::vector<std::string>& devices, const Json& request) {
  const auto rule = text_of(request, "rule");
  const auto scenario = text_of(request, "scenario");
  if (rule.has_value() == scenario.has_value()) {
    throw ControlServer::Refusal(R"(either "rule" or "scenario" is to be given)");
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
    scenario::check_devices(*rules, devices, rule ? "rule" : "scenario");
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
  for (const engine::faults::RuleReport& report : host.rule_reports()) {
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
    const auto reports = host.rule_reports();
    if (std::ranges::find(reports, *name, &engine::faults::RuleReport::name) == reports.end()) {
      throw ControlServer::Refusal(fmt::format("there is no rule '{}'", *name));
    }
  }
  host.submit(engine::RemoveRules{name});
  return Json::object();
}

/// The QP that a frame is for, and its peer.
Json qps_json(const EngineHost& host, uint32_t dest_qpn) {
  const engine::FabricSnapshot fabric = host.snapshot();
  uint32_t peer = 0;
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      if (qp.number.value == dest_qpn) peer = qp.dest_qpn;
    }
  }
  constexpr const char* kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  Json list = Json::array();
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      if (qp.number.value != dest_qpn && (peer == 0 || qp.number.value != peer)) continue;
      Json one;
      one["device"] = device.name;
      one["qp"] = qp.number.value;
      one["state"] = kStates[static_cast<size_t>(qp.state)];
      one["send_psn"] = qp.send_psn;
      one["unacked_psn"] = qp.unacked_psn;
      one["expected_psn"] = qp.expected_psn;
      one["msn"] = qp.msn;
      one["send_posted"] = qp.send_posted;
      one["recv_posted"] = qp.recv_posted;
      list.push_back(std::move(one));
    }
  }
  return list;
}

/// One frame arrives, if there is one now or later.
std::optional<Json> step(EngineHost& host) {
  for (int attempt = 0; attempt < 100 && host.next_frame().empty(); ++attempt) {
    // None is under way: time moves on to what happens next.
    host.submit(engine::ReleaseFrames{0});
  }
  const std::span<const uint8_t> bytes = host.next_frame();
  if (bytes.empty()) return std::nullopt;
  Json json;
  const auto packet = wire::parse_frame(bytes);
  const uint32_t dest_qpn = packet ? packet->bth.dest_qpn : 0;
  json["frame"] = packet ? wire::to_string(*packet) : std::string("malformed");
  json["before"] = qps_json(host, dest_qpn);
  host.submit(engine::ReleaseFrames{1});
  json["after"] = qps_json(host, dest_qpn);
  return json;
}

Json step(EngineHost& host, const Json& request) {
  if (!host.paused()) {
    throw ControlServer::Refusal("the NIC is not paused; pause it first: rocemu pause");
  }
  const uint64_t frames = number_of(request, "frames", 1, kMaxFrames).value_or(1);
  Json json;
  Json& list = json["frames"] = Json::array();
  for (uint64_t i = 0; i < frames; ++i) {
    auto one = step(host);
    if (!one) break;
    list.push_back(std::move(*one));
  }
  return json;
}

}  // namespace

ControlServer::Commands fault_commands(EngineHost& host,
                                       const std::vector<std::string>& device_names) {
  const auto set_paused = [&host](bool paused) {
    host.submit(engine::Pause{paused});
    return Json::object();
  };
  return {
      {"inject", taking({"rule", "scenario"},
                        [&host, device_names](const Json& request) {
                          return inject(host, device_names, request);
                        })},
      {"rules", taking({}, [&host](const Json&) { return rules_json(host); })},
      {"clear", taking({"name"}, [&host](const Json& request) { return clear(host, request); })},
      {"pause", taking({}, [set_paused](const Json&) { return set_paused(true); })},
      {"resume", taking({}, [set_paused](const Json&) { return set_paused(false); })},
      {"step", taking({"frames"}, [&host](const Json& request) { return step(host, request); })},
  };
}

}  // namespace rocemu::daemon
