#include "emulator/profile/profile_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "emulator/os/text_file.h"
#include "emulator/profile/profile_reader.h"

namespace rocemu::profile {
namespace {

namespace fs = std::filesystem;

constexpr char kFileSuffix[] = ".yaml";

fs::path library_directory() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path() / ".." / ROCEMU_PROFILE_DIR;
}

}  // namespace

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(library_directory(), ignored)) {
    if (entry.path().extension() == kFileSuffix) names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  names.insert(names.begin(), engine::generic_profile()->name);
  return names;
}

bool is_profile_file(std::string_view name_or_file) {
  return name_or_file.find('/') != std::string_view::npos || name_or_file.ends_with(kFileSuffix);
}

std::shared_ptr<const engine::DeviceProfile> load_profile(const std::string& name_or_file) {
  if (name_or_file == engine::generic_profile()->name) return engine::generic_profile();
  const bool is_file = is_profile_file(name_or_file);
  const fs::path path =
      is_file ? fs::path(name_or_file) : library_directory() / (name_or_file + kFileSuffix);
  std::error_code ignored;
  if (name_or_file.empty() || !fs::exists(path, ignored)) {
    throw ProfileError(fmt::format("there is no profile '{}'; use a file, or one of {}",
                                   name_or_file, fmt::join(profile_names(), ", ")));
  }
  std::string text;
  try {
    text = read_text_file(path, {.noun = "profile", .is_read_again = true});
  } catch (const TextFileError& error) {
    throw ProfileError(error.what());
  }
  return parse_profile(text, path.stem(), is_file ? name_or_file : path.filename().string());
}

}  // namespace rocemu::profile
