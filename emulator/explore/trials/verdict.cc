#include "emulator/explore/trials/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <regex>

#include "emulator/abi/linux_names.h"

namespace rocemu::explore {
namespace {

constexpr std::array<std::string_view, kVerdicts> kNames = {
    "SURVIVED", "REPORTED", "HANG", "CRASH", "WRONG", "LEAK", "SLOW", "MISUSE", "NOT REACHED"};
/// The virtual time below which no run counts as slow. It is the time that retries take with the
/// usual timeouts.
constexpr double kLeastSlowNs = 30e9;
constexpr int kSignalBase = 128;

/// Returns the last call of each process or, with `of_waiting`, only of the processes that wait. If
/// processes wait for one that has ended, the last call of that one is the place of the fault, and
/// not of the hang.
std::string last_calls(const RunFacts& facts, bool of_waiting = false) {
  std::string text;
  for (const auto& [process, call] : facts.last_calls) {
    const bool waits = std::ranges::any_of(
        facts.waits,
        [&, name = process + " "](const auto& wait) { return wait.starts_with(name); });
    if (of_waiting && !waits) continue;
    text += (text.empty() ? "" : ", ") + process + " " + call;
  }
  return text;
}

/// Returns a short form of a text such as "server#1 waits in ibv_get_cq_event: completion channel
/// of CQ 2, armed".
std::string in_short(const std::string& wait) {
  // Matches the text about a thread that waits for several descriptors at once.
  static const std::regex kAmong(
      R"((\S+) waits for .*among them (?:\w+): (?:completion channel of (CQ \d+)|event channel of (CM id \d+)).*)");
  if (std::smatch among; std::regex_match(wait, among, kAmong))
    return fmt::format("{} waits for events of {}", among[1].str(),
                       among[2].matched ? among[2].str() : among[3].str());
  static const std::regex kIn(
      R"((.*) waits in (\w+): (?:completion channel of (CQ \d+)|event channel of (CM id \d+)?)?.*)");
  std::smatch found;
  if (!std::regex_match(wait, found, kIn)) return wait;
  std::string of = found[3].matched ? found[3].str() : found[4].str();
  // These parts of the text give the reason for the wait, so they are kept.
  for (const std::string why : {", overrun", ", with completions to be polled"})
    if (!of.empty() && wait.find(why) != std::string::npos) of += why;
  return found[1].str() + " blocks in " + found[2].str() + (of.empty() ? "" : " (" + of + ")");
}

/// Returns a description of what the waiting threads wait for. If some wait for the NIC, omits
/// those that wait for other threads of their process, which are less relevant.
std::string who_waits(const RunFacts& facts) {
  std::string nic, others;
  for (const std::string& wait : facts.waits) {
    std::string& to = wait.find(" waits in ") != std::string::npos ? nic : others;
    to += (to.empty() ? "" : ", ") + in_short(wait);
  }
  return nic.empty() ? others : nic;
}

Judgment hang(const RunFacts& facts) {
  std::string place;
  for (const std::string& wait : facts.waits) place += in_short(wait) + "; ";
  const std::string waits = who_waits(facts);
  if (facts.deadlock)
    return {Verdict::kHang, place + "after " + last_calls(facts, true),
            waits.empty() ? "no thread continues" : waits};
  if (facts.runaway) {
    std::string repeats;
    for (const auto& [process, calls] : facts.late_calls)
      repeats += (repeats.empty() ? ": " : "; ") + process + " repeats " + calls;
    if (repeats.empty()) repeats = ": the NIC retries";  // no program makes calls any more
    return {Verdict::kHang, "runs without end" + repeats, "runs without end" + repeats};
  }
  return {Verdict::kHang, "runs without end after " + last_calls(facts),
          facts.flood ? "writes output without end" : "runs without end"};
}

std::string signal_name(int signal) {
  const char* const name = abi::signal_name(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

std::optional<Judgment> crash(const RunFacts& facts, const Baseline& baseline,
                              const Limits& limits) {
  std::vector<std::string> crashes;
  for (const std::string& one : facts.crashes)
    if (std::ranges::find(baseline.facts.crashes, one) == baseline.facts.crashes.end())
      crashes.push_back(one);
  constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
  const int signal = facts.status - kSignalBase;
  if (limits.status_tells_signal && crashes.empty() &&
      std::ranges::find(kCrashes, signal) != kCrashes.end())
    crashes.push_back("the command ends with " + signal_name(signal));
  if (crashes.empty()) return std::nullopt;
  std::string text;
  for (const std::string& one : crashes) text += (text.empty() ? "" : ", ") + one;
  return Judgment{Verdict::kCrash, text + " after " + last_calls(facts), text};
}

std::optional<Judgment> wrong(const RunFacts& facts, const Baseline& baseline) {
  const auto make = [&](const std::string& what, const std::string& difference) {
    return Judgment{
        Verdict::kWrong, what + " differs after " + last_calls(facts),
        fmt::format("exits with 0, but its {} differs from the baseline's: {}", what, difference)};
  };
  if (facts.oracle != 0)
    return Judgment{Verdict::kWrong, fmt::format("oracle after {}", last_calls(facts)),
                    fmt::format("exits with 0, but the oracle's status is {}", facts.oracle)};
  if (const std::string found = baseline.output.difference(facts.output); !found.empty())
    return make("standard output", found);
  for (const auto& [name, mask] : baseline.files) {
    const auto file = facts.files.find(name);
    const std::string found =
        file == facts.files.end() ? "it is missing" : mask.difference(file->second);
    if (!found.empty()) return make("file " + name, found);
  }
  return std::nullopt;
}

std::optional<Judgment> leak(const RunFacts& facts, const Baseline& baseline) {
  std::string text, kinds;
  for (const auto& [what, count] : facts.left) {
    // A process that failed may leave its objects to the system, even if its shell hides the exit
    // status.
    if (facts.failed.contains(what.substr(0, what.find(' ')))) continue;
    const auto before = baseline.facts.left.find(what);
    const int64_t more = count - (before == baseline.facts.left.end() ? 0 : before->second);
    if (more <= 0) continue;
    text += fmt::format("{}{} {} more", text.empty() ? "" : ", ", what, more);
    kinds += what + "; ";
  }
  if (text.empty()) return std::nullopt;
  return Judgment{Verdict::kLeak, kinds, "exits with 0, but leaves objects: " + text};
}

/// Returns the stacks of processes that do not poll. The stack of a polling thread differs from run
/// to run, since the thread may have been stopped anywhere in its loop.
std::vector<std::string> steady_stacks(const RunFacts& facts) {
  std::vector<std::string> list;
  for (const auto& [process, threads] : facts.stacks) {
    const bool polls =
        std::ranges::any_of(facts.waits, [&, name = process + " "](const std::string& wait) {
          return wait.starts_with(name) && wait.find("polls") != std::string::npos;
        });
    if (polls) continue;
    for (const std::string& thread : threads)
      if (!thread.empty()) list.push_back(process + ": " + thread);
  }
  return list;
}

/// Returns the last line of the text. In this line, a program usually describes its error.
std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  size_t begin = text.rfind('\n', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  return kNames[static_cast<size_t>(verdict)];
}

std::optional<Verdict> verdict_named(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    const bool is_it = std::ranges::equal(name, kNames[i], [](char a, char b) {
      return std::toupper(static_cast<unsigned char>(a)) == b;
    });
    if (is_it) return static_cast<Verdict>(i);
  }
  return std::nullopt;
}

namespace {

/// Returns the text in a form for terminals and for files of many formats. A program may print any
/// bytes: those that are not UTF-8 become U+FFFD, and control characters except tabs and newlines
/// become blanks.
std::string printable(const std::string& text) {
  std::string result = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
                           .get<std::string>();
  for (char& c : result)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == '\x7f') c = ' ';
  return result;
}

std::string last_words(const RunFacts& facts) {
  const std::string said = last_line(facts.errors.empty() ? facts.output : facts.errors);
  return said.empty() ? ", without a message" : ": " + said;
}

std::string exit_in_words(const RunFacts& facts) {
  return fmt::format("exits with {}{}", facts.status, last_words(facts));
}

/// Returns the judgment that a program reported the failure by its exit status; nothing if no
/// program did. A shell can exit with 0 although a program failed: if it waits for programs in the
/// background without naming them (POSIX, wait), or if its last command succeeded. A status that
/// also occurs in the baseline is not a sign of the fault.
std::optional<Judgment> reported(const RunFacts& facts, const Baseline& baseline) {
  if (facts.status != 0) return Judgment{Verdict::kReported, "", exit_in_words(facts)};
  std::string text;
  for (const auto& [process, statuses] : facts.statuses) {
    const auto before = baseline.facts.statuses.find(process);
    for (const int status : statuses) {
      if (before != baseline.facts.statuses.end() && before->second.contains(status)) continue;
      text += fmt::format("{}{} exits with {}", text.empty() ? "" : ", ", process, status);
    }
  }
  if (text.empty()) return std::nullopt;
  return Judgment{Verdict::kReported, "", text + last_words(facts)};
}

/// Returns the judgment "wrong": the program failed although there was no fault. The judgment's
/// signature has N in place of each number in the program's output, since numbers may differ from
/// run to run.
Judgment failed_without_fault(const Judgment& found, const RunFacts& facts) {
  static const std::regex kNumber("[0-9]+");
  const std::string place = std::regex_replace(found.detail, kNumber, "N");
  return {Verdict::kWrong, fmt::format("status {}, {}", facts.status, place), found.detail};
}

Judgment judge_raw(const RunFacts& facts, const Baseline& baseline, const Limits& limits) {
  if (auto found = crash(facts, baseline, limits)) {
    found->stacks = steady_stacks(facts);
    return *found;
  }
  if (facts.deadlock || facts.timeout || facts.flood || facts.runaway) {
    Judgment found = hang(facts);
    if (facts.deadlock) found.stacks = steady_stacks(facts);
    return found;
  }
  if (!facts.fired) return {Verdict::kNotReached, "", exit_in_words(facts)};
  if (const auto found = reported(facts, baseline))
    return facts.without_fault ? failed_without_fault(*found, facts) : *found;
  if (const auto found = wrong(facts, baseline)) return *found;
  if (const auto found = leak(facts, baseline)) return *found;
  const auto of_baseline = static_cast<double>(baseline.facts.end_ns);
  const auto took = static_cast<double>(facts.end_ns);
  if (took > limits.slow * of_baseline && took > of_baseline + kLeastSlowNs)
    return {Verdict::kSlow, "",
            fmt::format("takes {:.1f} s of virtual time instead of {:.6f} s", took / 1e9,
                        of_baseline / 1e9)};
  return {Verdict::kSurvived, "", ""};
}

/// Returns the judgment on a misuse. The same mistake at the same place counts once, whatever
/// fault triggered it.
Judgment judge(const Misuse& misuse) {
  std::vector<std::string> place;
  if (!misuse.places.empty()) place.push_back(misuse.places.back());
  return {.verdict = Verdict::kMisuse,
          .signature = fmt::format("{} {}{}", misuse.rule, misuse.program,
                                   place.empty() ? "" : ", " + place.front()),
          .detail = printable(fmt::format("{} [{}]: {}{}", misuse.is_error ? "error" : "warning",
                                          misuse.rule, misuse.message,
                                          misuse.where.empty() ? "" : ", in " + misuse.where)),
          .stacks = place,
          .is_warning = !misuse.is_error};
}

}  // namespace

Judgment judge(const RunFacts& facts, const Baseline& baseline, const Limits& limits) {
  Judgment judgment = judge_raw(facts, baseline, limits);
  judgment.detail = printable(judgment.detail);
  return judgment;
}

std::vector<Judgment> misuses_of(const std::vector<Misuse>& misuses) {
  std::vector<Judgment> judgments;
  for (const Misuse& misuse : misuses) {
    const Judgment judgment = judge(misuse);
    if (std::ranges::find(judgments, judgment.signature, &Judgment::signature) == judgments.end())
      judgments.push_back(judgment);
  }
  return judgments;
}

}  // namespace rocemu::explore
