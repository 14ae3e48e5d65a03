// `rocemu profile`: the NICs that rocemu can show, and how a real one becomes a profile.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/profile/devinfo.h"
#include "emulator/profile/profile_library.h"
#include "emulator/profile/profile_reader.h"
#include "emulator/profile/profile_text.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using Profile = std::shared_ptr<const engine::DeviceProfile>;
using Cells = std::vector<std::string>;

/// Rows of as many cells each; a long cell moves only the rest of its own row.
void print_columns(const std::vector<Cells>& rows) {
  constexpr size_t kWidest = 34;
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], std::min(row[i].size(), kWidest));
  }
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      line += row[i];
      line += std::string(row[i].size() < widths[i] ? widths[i] + 2 - row[i].size() : 2, ' ');
    }
    std::cout << line << row.back() << "\n";
  }
}

Profile load_for_command(const std::string& name) {
  try {
    return profile::load_profile(name);
  } catch (const profile::ProfileError& error) {
    throw Failure(error.what());
  }
}

int list_profiles() {
  std::vector<Cells> rows{{"name", "what it is"}};
  for (const std::string& name : profile::profile_names())
    rows.push_back({name, load_for_command(name)->summary});
  print_columns(rows);
  return 0;
}

int list_names() {
  for (const std::string& name : profile::profile_names()) std::cout << name << "\n";
  return 0;
}

int show_profile(const std::string& name) {
  const Profile shown = load_for_command(name);
  std::cout << "# " << shown->name << ": everything that this profile says, and what it leaves to "
            << "generic\n"
            << profile::to_yaml(*shown);
  return 0;
}

int diff_profiles(const std::string& first, const std::string& second) {
  const auto keyed = [](const Profile& of) {
    std::map<std::string, std::string> values;
    for (const profile::Line& line : profile::lines_of(*of))
      values[(line.section.empty() ? "" : line.section + ".") + line.key] = line.value;
    return values;
  };
  const Profile a = load_for_command(first), b = load_for_command(second);
  auto left = keyed(a), right = keyed(b);
  for (const auto& [key, value] : right) left.try_emplace(key, "-");
  std::vector<Cells> rows{{"key", a->name, b->name}};
  for (const auto& [key, value] : left) {
    const auto found = right.find(key);
    const std::string other = found != right.end() ? found->second : "-";
    if (value == other) continue;
    rows.push_back({key, value, other});
  }
  if (rows.size() == 1) return 0;
  print_columns(rows);
  return kExitFailure;
}

std::string output_of(const char* command) {
  std::string output;
  FILE* const pipe = popen(command, "r");
  if (pipe == nullptr) throw Failure(std::string("profile record: cannot run ") + command);
  char buffer[4096];
  size_t size;
  while ((size = fread(buffer, 1, sizeof buffer, pipe)) > 0) output.append(buffer, size);
  if (pclose(pipe) != 0)
    throw Failure(std::string("profile record: ") + command +
                  " failed; run it on the machine with the NIC, or give a file with its output");
  return output;
}

int record_profile(const std::vector<std::string>& words) {
  std::string dump, source = "ibv_devinfo -v";
  if (words.empty()) {
    dump = output_of("ibv_devinfo -v");
  } else {
    source = words[0];
    std::ifstream file(source, std::ios::binary);
    if (!file) throw Failure("profile record: cannot read " + source);
    dump.assign(std::istreambuf_iterator<char>(file), {});
    source = source.substr(source.rfind('/') + 1);
  }
  profile::RecordedProfile recorded;
  try {
    recorded = profile::record_profile(dump, source);
    profile::parse_profile(recorded.yaml, "recorded", "the recorded profile");
  } catch (const profile::ProfileError& error) {
    std::cout << recorded.yaml;
    throw Failure(std::string("profile record: the dump contradicts itself:\n") + error.what());
  } catch (const std::runtime_error& error) {
    throw Failure(std::string("profile record: ") + error.what());
  }
  std::cout << recorded.yaml;
  for (const std::string& line : recorded.unknown)
    std::cerr << "rocemu: profile record: not understood: " << line << "\n";
  return 0;
}

}  // namespace

std::string profile_help() {
  return "usage: rocemu profile list [--names]\n"
         "       rocemu profile show NAME|FILE\n"
         "       rocemu profile diff NAME|FILE NAME|FILE\n"
         "       rocemu profile record [FILE]\n"
         "\n"
         "Profiles are the NICs that `rocemu run --profile NAME` can show: their identity, limits\n"
         "and known quirks. `list` lists those that come with rocemu, `show` prints one with "
         "every\n"
         "value, `diff` the values in which two differ, and `record` makes one of what "
         "`ibv_devinfo\n"
         "-v` prints on this machine, or of a FILE with such output: a profile on standard "
         "output,\n"
         "and the lines that it does not understand on standard error.\n"
         "\n"
         "Exit status: 0 done, 1 failed, or the profiles of `diff` differ; 2 wrong usage.\n"
         "\n"
         "Examples:\n"
         "  rocemu profile diff generic irdma-e810\n"
         "  rocemu profile record devinfo.txt > my-nic.yaml && rocemu run --profile my-nic.yaml -- "
         "ibv_devinfo -v\n";
}

int profile(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("names", po::bool_switch(), "with list, print only the names");
  po::options_description all = options;
  all.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("profile", arguments, all, positional);
  Arguments words;
  if (values.count("words") != 0) words = values["words"].as<Arguments>();
  const std::string verb = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  if (verb == "list" && words.empty()) {
    return values["names"].as<bool>() ? list_names() : list_profiles();
  }
  if (verb == "show" && words.size() == 1) return show_profile(words[0]);
  if (verb == "diff" && words.size() == 2) return diff_profiles(words[0], words[1]);
  if (verb == "record" && words.size() <= 1) return record_profile(words);
  throw UsageError(
      "profile: give list, show NAME, diff NAME NAME or record [FILE]; rocemu help profile "
      "explains them");
}

}  // namespace rocemu::command
