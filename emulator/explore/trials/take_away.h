// Shrinks lists by delta debugging (Zeller, Hildebrandt, "Simplifying and isolating
// failure-inducing input", IEEE TSE 28, 2002).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rocemu::explore {

/// Removes parts of the list `best`, from halves down to single items, as long as the remaining
/// items lead to the finding. `leads` tries a list, assigns it to `best` if it leads to the
/// finding, and returns whether it did. It is called at most `most_runs` times.
template <class Item, class Leads>
void take_away(const std::vector<Item>& best, Leads leads, size_t most_runs) {
  size_t runs = 0;
  for (size_t size = (best.size() + 1) / 2; size != 0; size = size == 1 ? 0 : (size + 1) / 2) {
    for (size_t at = 0; at < best.size() && runs < most_runs; ++runs) {
      std::vector<Item> rest = best;
      const auto from = rest.begin() + static_cast<ptrdiff_t>(at);
      rest.erase(from, from + static_cast<ptrdiff_t>(std::min(size, rest.size() - at)));
      if (!leads(rest)) at += size;
    }
  }
}

}  // namespace rocemu::explore
