// The intended differences between rocemu and Linux rdma_rxe, with the reasons, and facts about the
// captured programs that a capture does not show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/player.h"

namespace rocemu::conformance {

struct IntendedDifference {
  std::string_view line;  // beginning of the line that describes the frame
  std::string_view reason;
  size_t at_least = 1;
  size_t at_most = 1;
};

struct Intended {
  std::vector<IntendedDifference> missing_requests{}, added_requests{};
  std::vector<IntendedDifference> missing_responses{}, added_responses{};
};

/// End 0 is 10.7.0.1, which is the client in most captures; end 1 is 10.7.0.2.
Intended intended_differences(const std::string& capture, int end);

Setting setting_of(const std::string& capture);

}  // namespace rocemu::conformance
