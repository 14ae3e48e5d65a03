// `rocemu profile`: lists the NICs that rocemu can emulate, and turns a real NIC into a profile.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/os/text_file.h"
#include "emulator/profile/devinfo.h"
#include "emulator/profile/profile_library.h"
#include "emulator/profile/profile_reader.h"
#include "emulator/profile/profile_text.h"
#include "emulator/profile/sysfs_identity.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using Profile = std::shared_ptr<const engine::DeviceProfile>;
using Cells = std::vector<std::string>;

/// Prints rows in aligned columns. All rows have the same number of cells. A cell that is too long
/// for its column shifts only the rest of its row.
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
  std::cout << "# " << shown->name << ": all values of this profile, including those of "
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

/// Returns the output of ibv_devinfo -v for the device, or for the first device if the name is
/// empty.
std::string output_of(const std::string& device) {
  const bool is_name = std::ranges::all_of(device, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!is_name) throw UsageError("profile record: --device takes the name of a device");
  const std::string command = "ibv_devinfo -v" + (device.empty() ? "" : " -d " + device);
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw Failure("profile record: cannot run " + command);
  std::string output;
  char buffer[4096];
  size_t size;
  while ((size = fread(buffer, 1, sizeof buffer, pipe)) > 0) output.append(buffer, size);
  if (pclose(pipe) != 0)
    throw Failure("profile record: " + command +
                  " failed; run it on the machine with the NIC, or give a file with its output");
  return output;
}

/// The sources that `profile record` reads.
struct Recorded {
  std::string file;    // the output of ibv_devinfo -v; empty: ibv_devinfo is run
  std::string device;  // empty: the first device
  std::string sysfs;   // the directory of the devices; empty for none
};

int record_profile(const Recorded& from) {
  std::string dump, source = "ibv_devinfo -v";
  if (from.file.empty()) {
    dump = output_of(from.device);
  } else {
    try {
      dump = read_text_file(from.file, {.noun = "saved output of ibv_devinfo"});
    } catch (const TextFileError& error) {
      throw Failure(std::string("profile record: ") + error.what());
    }
    source = from.file.substr(from.file.rfind('/') + 1);
  }
  profile::FurtherValues further;
  if (!from.sysfs.empty())
    further = [&from](const std::string& device) {
      return profile::read_sysfs(from.sysfs + "/" + device);
    };
  profile::RecordedProfile recorded;
  try {
    recorded = profile::record_profile(dump, source, further);
    profile::parse_profile(recorded.yaml, "recorded", "the recorded profile");
  } catch (const profile::ProfileError& error) {
    std::cout << recorded.yaml;
    throw Failure(std::string("profile record: the values contradict each other:\n") +
                  error.what());
  } catch (const std::runtime_error& error) {
    throw Failure(std::string("profile record: ") + error.what());
  }
  std::cout << recorded.yaml;
  for (const std::string& line : recorded.unknown)
    std::cerr << "rocemu: profile record: cannot interpret: " << line << "\n";
  return 0;
}

}  // namespace

std::string profile_help() {
  return R"(usage: rocemu profile list [--names]
       rocemu profile show NAME|FILE
       rocemu profile diff NAME|FILE NAME|FILE
       rocemu profile record [--device NAME] [--sysfs DIR] [FILE]

A profile gives rocemu's devices the identity, limits and known quirks of another NIC
(`rocemu run --profile NAME`). `list` lists the installed profiles, `show` prints all values
of one, and `diff` prints the values in which two differ.

`record` writes a profile of a real NIC to standard output. It reads the output of
`ibv_devinfo -v` and sysfs of this machine, or that output from FILE, saved on another
machine. It prints lines that it does not understand on standard error.

Options:
  --names        with `list`: print only the names
  --device NAME  with `record`: read this device (default: the first one)
  --sysfs DIR    with `record`: read the device's sysfs files from DIR/NAME
                 (default /sys/class/infiniband; none with a FILE)

Exit status: 0 on success; 1 on failure, or if the profiles of `diff` differ; 2 for wrong
usage.

Examples:
  rocemu profile diff generic irdma-e810
  rocemu profile record devinfo.txt > my-nic.yaml
  rocemu run --profile my-nic.yaml -- ibv_devinfo -v
)";
}

int profile(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("names", po::bool_switch(), "")("device", po::value<std::string>(), "")(
      "sysfs", po::value<std::string>(), "");
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
  const auto text = [&](const char* option) {
    return values.count(option) != 0 ? values[option].as<std::string>() : "";
  };
  if (verb == "record" && words.size() <= 1) {
    if (!words.empty() && values.count("device") != 0)
      throw UsageError("profile record: --device reads a NIC of this machine; leave out FILE");
    const std::string sysfs =
        words.empty() && values.count("sysfs") == 0 ? "/sys/class/infiniband" : text("sysfs");
    return record_profile({words.empty() ? "" : words[0], text("device"), sysfs});
  }
  throw UsageError(
      "profile: use list, show NAME, diff NAME NAME or record [FILE]; rocemu help profile "
      "explains them");
}

}  // namespace rocemu::command
