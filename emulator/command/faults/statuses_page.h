// docs/statuses.md, as the build puts it into the program.
#pragma once

#include <string_view>

namespace rocemu::command {

extern const std::string_view kStatusesPage;

}  // namespace rocemu::command
