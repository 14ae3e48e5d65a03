// Reads and writes whole text files.
#pragma once

#include <filesystem>
#include <string>

namespace rocemu::explore {

/// Writes the text to the file. Throws std::system_error, which names the file.
void write_file(const std::filesystem::path& path, const std::string& text);

/// Returns the contents; empty if the file cannot be read.
std::string contents_of(const std::filesystem::path& path);

}  // namespace rocemu::explore
