// The language of scenario files as a JSON schema, for editors that complete and check YAML.
#pragma once

#include <string>

namespace rocemu::scenario {

/// Made of the same tables of keys and names as the parser has. It is no stricter than the parser,
/// and does not know what cannot be had together.
std::string schema();

}  // namespace rocemu::scenario
