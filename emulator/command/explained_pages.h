// Pages of docs/ that the build puts into the program.
#pragma once

#include <string_view>

namespace rocemu::command {

extern const std::string_view kErrorsPage, kFaultsPage, kNaksPage;

}  // namespace rocemu::command
