// Selects the part of a timeline that is shown.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

struct Selection {
  std::vector<std::string> processes;  // names or pids
  std::vector<std::string> devices;
  std::vector<uint32_t> qpns;
  std::set<Kind> kinds;  // empty: all
  std::optional<engine::Duration> from, to;
  std::optional<size_t> around_error;  // the number of rows before and after the first error
};

/// Keeps only `most` rows: those around the first error, or the first fault if there is no error;
/// without both, the first rows. Also removes lanes in which no row remains.
void limit(size_t most, Timeline& timeline);

/// Returns an error that names the first process, device or QP of the selection that the timeline
/// does not have, and those that it has; empty if the timeline has all.
std::string why_unmatched(const Selection& selection, const Timeline& timeline);

/// Applies the selection. Also removes lanes in which no row remains.
void select(const Selection& selection, Timeline& timeline);

}  // namespace rocemu::timeline
