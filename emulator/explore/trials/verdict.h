// Judges the effect of a fault on the program, and determines the place where the program ended.
// Runs that ended at the same place are assumed to have the same cause.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/explore/trials/output_mask.h"
#include "emulator/explore/trials/run_facts.h"

namespace rocemu::explore {

enum class Verdict : uint8_t {
  kSurvived,
  kReported,    // a program failed in bounded virtual time, and its status shows it
  kHang,        // all threads wait, and nothing is due; or the run does not end
  kCrash,       // a signal, a sanitizer, valgrind
  kWrong,       // all programs exit as in the baseline, but the output differs; or one fails
                // without a fault
  kLeak,        // the same exits and output, but more objects are left than by the baseline
  kSlow,        // success, after many times the baseline's time
  kMisuse,      // the verbs sanitizer reports a wrong use; and the program survived or failed
  kNotReached,  // the point did not occur, because the run differed before it
};
inline constexpr size_t kVerdicts = 9;

std::string_view name_of(Verdict verdict);
/// Returns the verdict with that name, in upper or lower case; for example "reported" for
/// kReported.
std::optional<Verdict> verdict_named(std::string_view name);

struct Judgment {
  Verdict verdict{};
  std::string signature;  // where it ended: equal for equal causes
  std::string detail;     // for a reader: "server#1 blocks in ibv_get_cq_event (CQ 2)"
  /// The functions in which the program's threads were: "server#1: wait < main". Contains only the
  /// parts that are equal in each run. Empty if no tool that reads stacks is installed.
  std::vector<std::string> stacks = {};
  bool is_warning = false;  // a misuse that is only a warning
};

struct Baseline {
  RunFacts facts;
  OutputMask output, errors;
  std::map<std::string, OutputMask> files;
  std::vector<Judgment> misuses = {};  // in any run without a fault
};

struct Limits {
  double slow = 10;  // factor of the baseline's virtual time; kLeastSlowNs is the minimum
  /// If true, an exit status above 128 means that a signal killed the process. In lockstep it is
  /// false: there the NIC reports each process that crashes, and a shell may exit with any status.
  bool status_tells_signal = false;
};

Judgment judge(const RunFacts& facts, const Baseline& baseline, const Limits& limits);

/// Returns a judgment for each mistake in `misuses`. If a mistake occurs several times, it gets
/// only one judgment.
std::vector<Judgment> misuses_of(const std::vector<Misuse>& misuses);

}  // namespace rocemu::explore
