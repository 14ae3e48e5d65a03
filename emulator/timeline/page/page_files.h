// The contents of the files in page/, which the build compiles into the program
#pragma once

#include <string_view>

namespace rocemu::timeline {

extern const std::string_view kPageHtml, kPageStyle, kPageLayout, kPageScript;

}  // namespace rocemu::timeline
