// The files of page/, which the build puts into the program
#pragma once

#include <string_view>

namespace rocemu::timeline {

extern const std::string_view kPageHtml, kPageStyle, kPageLayout, kPageScript;

}  // namespace rocemu::timeline
