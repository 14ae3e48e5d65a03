#include "emulator/explore/trials/variation.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::explore {

std::string Variation::text() const {
  if (!shrunk.empty()) return shrunk;
  if (!schedule.empty()) return "threads execute in order " + schedule;
  return fmt::format(
      "the NIC shows rare behavior that the specification allows (--adversarial={} "
      "--seed {})",
      adversarial, seed);
}

std::vector<std::string> Variation::added_to(std::vector<std::string> options) const {
  if (!schedule.empty()) options.insert(options.end(), {"--schedule", schedule});
  if (adversarial.empty()) return options;
  if (const auto given = std::ranges::find(options, "--seed"); given != options.end())
    options.erase(given, given + 2);
  options.insert(options.end(), {"--adversarial=" + adversarial, "--seed", std::to_string(seed)});
  return options;
}

void Variation::to_json(Json& json) const {
  json["schedule"] = schedule;
  if (!shrunk.empty()) json["shrunk"] = shrunk;
  if (adversarial.empty()) return;
  json["adversarial"] = adversarial;
  json["seed"] = seed;
}

Variation Variation::from_json(const Json& json) {
  Variation variation;
  json.at("schedule").get_to(variation.schedule);
  variation.shrunk = json.value("shrunk", "");
  variation.adversarial = json.value("adversarial", "");
  variation.seed = json.value("seed", uint64_t{0});
  return variation;
}

}  // namespace rocemu::explore
