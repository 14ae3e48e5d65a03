// The common parts of a ladder of text and one of lines: which events share a row, and how texts
// are broken into lines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Breaks a text at spaces, into lines of at most `width` characters.
std::vector<std::string> wrap(const std::string& text, size_t width);

/// Calls `write` for each row: a happening, and how many of the same follow each other.
void for_each_group(const Timeline& timeline,
                    const std::function<void(const Happening&, size_t)>& write);

/// "post_recv wr 1 (500 times)".
std::string text_of_group(const Happening& one, size_t count);

/// A lane's head in lines of at most `width`: "rping[4711]" and "rocemu0 QP 0x11 RC". What is in
/// which line does not depend on how long the number of the process is.
std::vector<std::string> head_of(const Lane& lane, size_t width);

/// "rping[4711] rocemu0 QP 0x11 RC".
std::string title_with_type(const Lane& lane);

}  // namespace rocemu::timeline
