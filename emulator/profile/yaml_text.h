// Writes text of unknown origin as a YAML string.
#pragma once

#include <string>
#include <string_view>

namespace rocemu::profile {

/// Returns the text in double quotes, without control characters.
inline std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + "\"";
}

}  // namespace rocemu::profile
