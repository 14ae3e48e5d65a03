// The text of docs/statuses.md, which the build compiles into the program.
#pragma once

#include <string_view>

namespace rocemu::command {

extern const std::string_view kStatusesPage;

}  // namespace rocemu::command
