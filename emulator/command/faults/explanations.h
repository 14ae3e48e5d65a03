// The rows of docs/statuses.md, each of which explains a status, an event, a NAK, the reason of a
// REJ, or an errno.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rocemu::command {

struct Explanation {
  std::string name;    // "IBV_WC_RETRY_EXC_ERR"
  std::string cause;   // or the meaning
  std::string remedy;  // what programs do about it
  std::string rule;    // the rule that causes it on purpose; empty if there is none
};

/// Returns all rows of docs/statuses.md.
const std::vector<Explanation>& explanations();

/// Finds the explanation of a name as people write it: "RETRY_EXC_ERR", "rnr nak", "ENOMEM".
std::optional<Explanation> find_explanation(const std::string& name);

/// Returns the name that is most similar to a mistyped one; empty if none is similar.
std::string nearest_explained(const std::string& name);

}  // namespace rocemu::command
