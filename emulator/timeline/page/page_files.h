// The files of page/, as the build puts them into the program.
#pragma once

#include <string_view>

namespace rocemu::timeline {

extern const std::string_view kPageHtml, kPageStyle, kPageLayout, kPageScript;

}  // namespace rocemu::timeline
