// Copies and removes recordings, which consist of several files.
#pragma once

#include <filesystem>

namespace rocemu::command {

/// Returns the path of a file; `name` is a constant of journal/recording.h.
std::filesystem::path file_in(const std::filesystem::path& dir, const char* name);
/// Creates a directory and its parents. Throws Failure.
void make_directory(const std::filesystem::path& dir);
/// Copies a recording. Throws Failure.
void copy_recording(const std::filesystem::path& from, const std::filesystem::path& to);
/// Removes a recording and, if it is then empty, its directory.
void remove_recording(const std::filesystem::path& dir);

}  // namespace rocemu::command
