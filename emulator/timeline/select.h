// Which part of a timeline is shown.
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
  std::optional<size_t> around_error;  // so many before and after the first
};

/// Keeps `most` rows: the first ones, or those around the first error if that is not among them.
void limit(size_t most, Timeline& timeline);

/// Lanes that have nothing left go as well.
void select(const Selection& selection, Timeline& timeline);

}  // namespace rocemu::timeline
