// Writes a NetworkSeries as text, CSV, one HTML page, or counters for ui.perfetto.dev.
#pragma once

#include <ostream>

#include "emulator/timeline/network/network_series.h"

namespace rocemu::timeline {

void write_series_text(const NetworkSeries& series, size_t width, std::ostream& out);
/// Writes a line for each interval of each port and QP, except for intervals in which nothing
/// happened there.
void write_series_csv(const NetworkSeries& series, std::ostream& out);
void write_series_page(const NetworkSeries& series, std::ostream& out);
/// Writes Chrome trace JSON. It has three counters for each port, and one for each QP.
void write_series_trace(const NetworkSeries& series, std::ostream& out);

}  // namespace rocemu::timeline
