#include "emulator/timeline/model.h"

#include <fmt/format.h>

namespace rocemu::timeline {

const char* kind_name(Kind kind) {
  for (const auto& [name, value] : kKindNames) {
    if (value == kind) return name;
  }
  return "";
}

std::string title(const Lane& lane) {
  std::string text = lane.process;
  if (lane.pid != 0) text += fmt::format("[{}]", lane.pid);
  if (!lane.device.empty()) text += (text.empty() ? "" : " ") + lane.device;
  if (lane.qpn != 0) text += fmt::format(" QP {:#x}", lane.qpn);
  return text;
}

std::string duration_text(engine::Duration duration) {
  const auto ns = static_cast<double>(duration.count());
  const auto [scale, unit] = ns < 1e3   ? std::pair(1.0, "ns")
                             : ns < 1e6 ? std::pair(1e3, "us")
                             : ns < 1e9 ? std::pair(1e6, "ms")
                                        : std::pair(1e9, "s");
  std::string text = fmt::format("{:.{}f}", ns / scale, ns < 1e9 ? 3 : 6);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " " + unit;
}

}  // namespace rocemu::timeline
