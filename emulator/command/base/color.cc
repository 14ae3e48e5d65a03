#include "emulator/command/base/color.h"

#include <unistd.h>

#include <cstdlib>

namespace rocemu::command {
namespace {

const char* code_of(Style style) {
  switch (style) {
    case Style::kHeading:
      return "\033[1m";
    case Style::kLabel:
      return "\033[36m";
    case Style::kGood:
      return "\033[32m";
    case Style::kBad:
      return "\033[31m";
    case Style::kNote:
      return "\033[33m";
  }
  return "";
}

}  // namespace

bool has_colors(int fd) {
  const char* const no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return isatty(fd) != 0;
}

std::string styled(std::string_view text, Style style, int fd) {
  if (!has_colors(fd)) return std::string(text);
  return code_of(style) + std::string(text) + "\033[0m";
}

}  // namespace rocemu::command
