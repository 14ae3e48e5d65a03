// The counters in sysfs: before a program looks at one, the daemon writes those of now.
#pragma once

namespace rocemu::shim {

/// True for a served name that is a counter, or a directory of counters.
bool is_counter(const char* name);

/// Returns when the counters below the daemon's directory are those of now, or cannot be had.
void refresh_counters(const char* dir);

}  // namespace rocemu::shim
