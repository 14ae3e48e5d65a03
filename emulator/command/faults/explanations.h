// The rows of docs/statuses.md: what a status, event, NAK, reason of a REJ or errno means.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rocemu::command {

struct Explanation {
  std::string name;    // "IBV_WC_RETRY_EXC_ERR"
  std::string cause;   // or the meaning
  std::string remedy;  // what programs do about it
  std::string rule;    // that causes it on purpose; empty if none does
};

/// All rows of the page.
const std::vector<Explanation>& explanations();

/// Finds the explanation of a name as people write it: "RETRY_EXC_ERR", "rnr nak", "ENOMEM".
std::optional<Explanation> find_explanation(const std::string& name);

/// The name that is meant by a mistyped one; empty if there is none like it.
std::string nearest_explained(const std::string& name);

}  // namespace rocemu::command
