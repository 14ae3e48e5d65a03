// The common parts of a ladder drawn with characters and a ladder drawn with lines: which events
// share a row, and how texts are broken into lines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Breaks a text at spaces, into lines of at most `width` characters.
std::vector<std::string> wrap(const std::string& text, size_t width);

/// Calls `write` for each row, with a happening and the number of equal ones that follow each
/// other.
void for_each_group(const Timeline& timeline,
                    const std::function<void(const Happening&, size_t)>& write);

/// Returns the text of `count` equal happenings, such as "post_recv wr 1 (500 times)".
std::string text_of_group(const Happening& one, size_t count);

/// Returns a lane's head in lines of at most `width` characters: "rping[4711]" and "rocemu0 QP 0x11
/// RC". The distribution to lines does not depend on the length of the process number.
std::vector<std::string> head_of(const Lane& lane, size_t width);

/// Returns the lane's title with the type of its QP, such as "rping[4711] rocemu0 QP 0x11 RC".
std::string title_with_type(const Lane& lane);

}  // namespace rocemu::timeline
