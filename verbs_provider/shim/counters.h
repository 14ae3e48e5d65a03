// The counters in sysfs: the daemon updates them before a program reads one.
#pragma once

namespace rocemu::shim {

/// Returns whether a served name is a counter, or a directory of counters.
bool is_counter(const char* name);

/// Updates the counters below the daemon's directory, if that is possible.
void refresh_counters(const char* dir);

}  // namespace rocemu::shim
