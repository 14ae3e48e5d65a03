// Describes the language of scenario files as a JSON schema, for editors that complete and check
// YAML.
#pragma once

#include <string>

namespace rocemu::scenario {

/// Returns the schema, which is made from the parser's tables of keys and names. It accepts
/// everything that the parser accepts, and also keys that exclude each other.
std::string schema();

}  // namespace rocemu::scenario
