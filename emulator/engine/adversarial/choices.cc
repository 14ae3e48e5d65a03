#include "emulator/engine/adversarial/choices.h"

#include <chrono>

namespace rocemu::engine::adversarial {

Choices::Choices(Class of, const FabricConfig& config, Step& step)
    : class_(static_cast<uint8_t>(of)),
      is_reported_(config.reports_adversarial_choices),
      step_(step) {
  for (const auto& [one, number] : config.adversarial_choices)
    if (one == class_) only_.insert(number);
}

AllChoices::AllChoices(const FabricConfig& config, Step& step)
    : placement(Class::kPlacement, config, step),
      late_read(Class::kLateRead, config, step),
      order(Class::kOrder, config, step),
      atomicity(Class::kAtomicity, config, step),
      relaxed(Class::kRelaxed, config, step) {}

std::string in_words(Duration delay) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(delay).count()) +
         " us";
}

}  // namespace rocemu::engine::adversarial
