// The files of a recording, as one.
#pragma once

#include <filesystem>

namespace rocemu::command {

/// `name` is as journal/recording.h has it.
std::filesystem::path file_in(const std::filesystem::path& dir, const char* name);
/// Creates a directory and its parents. Throws Failure.
void make_directory(const std::filesystem::path& dir);
/// Throws Failure.
void copy_recording(const std::filesystem::path& from, const std::filesystem::path& to);
/// Also removes the directory, if nothing else is in it.
void remove_recording(const std::filesystem::path& dir);

}  // namespace rocemu::command
