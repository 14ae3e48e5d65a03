#include "emulator/command/faults/rule_reports.h"

#include <iostream>

#include "emulator/command/base/text_table.h"

namespace rocemu::command {

void print_rules(const Json& reply, bool as_json) {
  if (as_json) {
    std::cout << reply.at("rules").dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  Table table({"rule", "on", "matched", "fired"});
  for (const Json& rule : reply.at("rules")) {
    table.add({rule.at("name").get<std::string>(), rule.at("on").get<std::string>(),
               std::to_string(rule.at("matched").get<uint64_t>()),
               std::to_string(rule.at("fired").get<uint64_t>())});
  }
  std::cout << (reply.at("rules").empty() ? "no rules\n" : table.text(""));
}

std::vector<std::string> idle_rules(const Json& reply) {
  std::vector<std::string> lines;
  for (const Json& rule : reply.at("rules")) {
    if (rule.at("fired").get<uint64_t>() != 0) continue;
    const auto matched = rule.at("matched").get<uint64_t>();
    lines.push_back(
        "the rule '" + rule.at("name").get<std::string>() + "' never acted: " +
        (matched == 0
             ? "nothing matched it"
             : std::to_string(matched) +
                   " occurrences matched it, but nth, every or probability selected none of "
                   "them"));
  }
  return lines;
}

}  // namespace rocemu::command
