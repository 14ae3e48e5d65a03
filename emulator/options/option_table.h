// Defines every option of `rocemu run`, `rocemu up`, `rocemu explore` and rocemud, in one row each.
// Parsing, help, manual pages and completion use this table.
#pragma once

#include <cstdint>
#include <span>

namespace rocemu::options {

enum class Command : uint8_t { kRun = 1, kUp = 2, kExplore = 4, kDaemon = 8 };

/// A set of the commands that have an option.
class Commands {
 public:
  constexpr Commands(Command command) : bits_(static_cast<uint8_t>(command)) {}
  constexpr Commands operator|(Commands other) const {
    return Commands(static_cast<uint8_t>(bits_ | other.bits_));
  }
  constexpr bool contains(Command command) const {
    return (bits_ & static_cast<uint8_t>(command)) != 0;
  }

 private:
  constexpr explicit Commands(uint8_t bits) : bits_(bits) {}
  uint8_t bits_;
};

/// The tasks by which the help groups options, in the order of the help
enum class Task : uint8_t {
  kServe,
  kChooseDevices,
  kCauseFaults,
  kRecordAndCompare,
  kMakeDeterministic,
  kFindHangs,
  kFindMisuse,
  kChooseFaults,
  kJudgeRuns,
  kDivideWork,
  kOther,
};

/// Which help shows an option: --help (and --help-all), only --help-all, or none. One part of
/// rocemu passes options of the last kind to another part.
enum class Shown : uint8_t { kAlways, kInHelpAll, kNever };

/// The kind of an option's value. With kMaybeText, the value can be omitted; if it is present, it
/// must follow "=".
enum class Value : uint8_t { kSwitch, kText, kMaybeText, kTexts, kNumber };

struct Option {
  const char* name;
  Value value;
  const char* argument;  // its name in the help; empty for a switch
  Commands commands;
  Task task;
  Shown shown;
  const char* help;
};

/// Returns all rows of the table. The options of each task are in the order of the help.
std::span<const Option> option_table();

}  // namespace rocemu::options
