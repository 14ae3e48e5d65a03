#include "emulator/scenario/effect_words.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "emulator/abi/control.h"
#include "emulator/abi/linux_names.h"
#include "wire/eth_headers.h"
#include "wire/print.h"

namespace rocemu::scenario {
namespace {

using engine::Duration;
using engine::faults::Effects;

std::string answer_text(uint8_t syndrome) {
  std::string text = wire::to_string(wire::Aeth{syndrome, 0});
  return text.substr(0, text.find(" msn"));
}

}  // namespace

std::string in_words(Duration time) {
  const auto count = static_cast<double>(time.count());
  if (count >= 1e9) return fmt::format("{:g} s", count / 1e9);
  if (count >= 1e6) return fmt::format("{:g} ms", count / 1e6);
  if (count >= 1e3) return fmt::format("{:g} us", count / 1e3);
  return fmt::format("{:g} ns", count);
}

std::string in_words(const Effects& effects) {
  std::string words;
  const auto say = [&](bool does, std::string_view what) {
    if (does) words += fmt::format("{}{}", words.empty() ? "" : ", ", what);
  };
  const auto time = [](Duration length) { return in_words(length); };
  say(effects.log, "sees");
  say(effects.drop, "drops");
  say(effects.delay != Duration{}, "delays by " + time(effects.delay));
  say(effects.jitter != Duration{}, "delays by up to " + time(effects.jitter));
  say(effects.duplicate != 0, fmt::format("sends {} more of it", effects.duplicate));
  say(effects.reorder != 0, fmt::format("lets {} overtake it", effects.reorder));
  say(effects.corrupt.has_value(), "corrupts");
  say(!effects.rewrite.empty(), "rewrites");
  say(!effects.inject.empty(), fmt::format("injects {} beside it", effects.inject.size()));
  say(effects.reject.has_value(), "rejects");
  say(effects.latency != Duration{}, "takes " + time(effects.latency) + " for it");
  say(effects.bits_per_second != 0, "slows down");
  say(effects.loss > 0, "may lose");
  say(effects.rnr, "has no receive for it");
  if (effects.answer) say(true, "answers with " + answer_text(*effects.answer));
  say(effects.silent, "ignores");
  if (effects.status) say(true, fmt::format("fails it with {}", abi::name_of(*effects.status)));
  say(effects.hold != 0, fmt::format("holds it until there are {}", effects.hold));
  say(effects.overrun, "overruns the CQ");
  if (effects.event) say(true, fmt::format("makes it {}", abi::name_of(*effects.event)));
  if (effects.cm_event) say(true, fmt::format("makes it {}", abi::name_of(*effects.cm_event)));
  if (effects.cm_status) say(true, fmt::format("gives it status {}", *effects.cm_status));
  if (effects.error != 0) {
    const char* const name = abi::errno_name(effects.error);
    say(true, fmt::format("fails it with {}", name != nullptr ? name : "an errno"));
  }
  if (effects.raise) say(true, fmt::format("raises {}", abi::name_of(*effects.raise)));
  if (effects.raise_cm) say(true, fmt::format("raises {}", abi::name_of(*effects.raise_cm)));
  if (effects.port) say(true, effects.port->up ? "takes the port up" : "takes the port down");
  say(effects.gid.has_value(), "changes the GID");
  say(effects.remove_device, "pulls the device out");
  say(effects.kill, "kills its process");
  say(effects.pause, "pauses the NIC");
  return words.empty() ? "acts" : words;
}

}  // namespace rocemu::scenario
