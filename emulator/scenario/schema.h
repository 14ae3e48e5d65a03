// The language of scenario files as a JSON schema, for editors that complete and check YAML
#pragma once

#include <string>

namespace rocemu::scenario {

/// Returns the schema. It is made from the parser's tables of keys and names. It is not stricter
/// than the parser, and does not contain which keys exclude each other.
std::string schema();

}  // namespace rocemu::scenario
