// Every option of `rocemu run`, `rocemu up`, `rocemu explore` and rocemud, in one row each.
// Parsing, help, manual pages and completion use this table.
#pragma once

#include <cstdint>
#include <span>

namespace rocemu::options {

enum class Command : uint8_t { kRun = 1, kUp = 2, kExplore = 4, kDaemon = 8 };

/// A set of commands.
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

/// The tasks by which help groups options, in the order of the help
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

/// The help that shows an option: --help, only --help-all, or none (for options that one part of
/// rocemu passes to another).
enum class Shown : uint8_t { kAlways, kInHelpAll, kNever };

/// The kind of an option's value. With kMaybeText, the value may be omitted, or follows "=".
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

/// Returns all rows. The options of a task are in the order of the help.
std::span<const Option> option_table();

}  // namespace rocemu::options
