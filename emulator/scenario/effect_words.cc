#include "emulator/scenario/effect_words.h"

#include <fmt/format.h>

namespace rocemu::scenario {

std::string in_words(engine::Duration time) {
  const auto count = static_cast<double>(time.count());
  if (count >= 1e9) return fmt::format("{:g} s", count / 1e9);
  if (count >= 1e6) return fmt::format("{:g} ms", count / 1e6);
  if (count >= 1e3) return fmt::format("{:g} us", count / 1e3);
  return fmt::format("{:g} ns", count);
}

}  // namespace rocemu::scenario
