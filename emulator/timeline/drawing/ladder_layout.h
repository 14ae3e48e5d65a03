// The common parts of a ladder in text and a ladder in SVG: which events share a row, and how texts
// are broken into lines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Breaks a text at blanks into lines of at most `width` characters.
std::vector<std::string> wrap(const std::string& text, size_t width);

/// Calls `write` for each row, with the row's first happening and the number of equal happenings
/// that share the row.
void for_each_group(const Timeline& timeline,
                    const std::function<void(const Happening&, size_t)>& write);

/// Returns the text for `count` equal happenings in one row, such as "post_recv wr 1 (500 times)".
std::string text_of_group(const Happening& one, size_t count);

/// Returns the head of a lane in lines of at most `width` characters, such as "rping[4711]" and
/// "rocemu0 QP 0x11 RC". The lines break at the same places whatever the length of the process
/// number is.
std::vector<std::string> head_of(const Lane& lane, size_t width);

/// Returns a lane's title with the type of the lane's QP, such as "rping[4711] rocemu0 QP 0x11 RC".
std::string title_with_type(const Lane& lane);

}  // namespace rocemu::timeline
