// Colors text that is written to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace rocemu::command {

enum class Style { kHeading, kLabel, kGood, kBad, kNote };

/// Returns whether `fd` is a terminal and neither NO_COLOR (no-color.org) nor TERM=dumb forbids
/// colors.
bool has_colors(int fd);

/// Returns the text in the given style as it must be written to `fd`: with escape sequences if `fd`
/// shows colors, else unchanged.
std::string styled(std::string_view text, Style style, int fd);

}  // namespace rocemu::command
