// Files as texts.
#pragma once

#include <filesystem>
#include <string>

namespace rocemu::explore {

/// Throws std::system_error, which names the file.
void write_file(const std::filesystem::path& path, const std::string& text);

/// Empty if it cannot be read.
std::string contents_of(const std::filesystem::path& path);

}  // namespace rocemu::explore
