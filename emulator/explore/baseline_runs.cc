#include "emulator/explore/baseline_runs.h"

#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "emulator/explore/findings/exploration_report.h"

namespace rocemu::explore {
namespace {

constexpr size_t kRuns = 3;
/// The latencies of links in further runs. With another latency everything happens at another time,
/// but nothing else changes.
constexpr const char* kLatencies[] = {"3us", "40us"};

std::string tail_of(const std::string& text) {
  constexpr size_t kMost = 600;
  std::string tail = text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
  while (tail.ends_with('\n')) tail.pop_back();
  return tail;
}

bool fails_by_itself(const RunFacts& facts) {
  return facts.status != 0 && facts.trouble.empty() && !facts.flood && !facts.deadlock &&
         !facts.timeout;
}

/// Returns the command line by which a user can repeat the run without a fault, with the same
/// devices.
std::string undisturbed_run(const RunnerOptions& runs) {
  std::vector<std::string> words = {"rocemu", "run"};
  if (runs.lockstep) words.emplace_back("--lockstep");
  words.insert(words.end(), runs.fabric.begin(), runs.fabric.end());
  words.emplace_back("--");
  words.insert(words.end(), runs.command.begin(), runs.command.end());
  return shell_text(words);
}

void require_success(const RunFacts& facts, const Options& options) {
  const std::string command = shell_text(options.runs.command);
  if (!facts.trouble.empty() && facts.status != 0)
    throw ExploreError(facts.trouble + "\nthe baseline of " + command + " could not be run");
  if (facts.flood)
    throw ExploreError(command +
                       " prints more than 64 MiB even without a fault; make it print less");
  if (facts.deadlock) {
    std::string waits;
    for (const std::string& wait : facts.waits) waits += "\n  " + wait;
    throw ExploreError(
        command +
        " hangs without any fault, so explore could not find hangs that faults cause; "
        "inspect the hang with: " +
        undisturbed_run(options.runs) +
        " (if this run does not hang, parallel runs may disturb each other through a "
        "file; use --jobs 1)" +
        waits);
  }
  if (facts.timeout)
    throw ExploreError(fmt::format(
        "{} has not ended after {} s without any fault. Give --run-timeout a longer time, or a "
        "command that ends by itself (a server and its client: sh -c 'server & client; status=$?; "
        "wait $! && exit $status')",
        command, options.runs.timeout.count() / 1000));
  if (facts.status != 0)
    throw ExploreError(fmt::format(
        "{} fails without any fault, with status {}; inspect it with: {}\n"
        "its last output: {}\n(its standard input is /dev/null, and it cannot have a terminal)",
        command, facts.status, undisturbed_run(options.runs),
        tail_of(facts.errors.empty() ? facts.output : facts.errors)));
}

/// Returns a description of the first line in which the recordings differ; empty if they are equal.
/// Ignores differences in PIDs and, on the real clock, in times.
std::string difference_of(const std::filesystem::path& a, const std::filesystem::path& b,
                          bool lockstep) {
  const std::regex by_chance(lockstep ? R"re(,"pid":\d+)re" : R"re(,"pid":\d+|"t":\d+,)re");
  std::ifstream first(a / "events.jsonl"), other(b / "events.jsonl");
  for (size_t number = 1;; ++number) {
    std::string of_first, of_other;
    const bool has_first = static_cast<bool>(std::getline(first, of_first));
    const bool has_other = static_cast<bool>(std::getline(other, of_other));
    if (!has_first && !has_other) return "";
    if (of_first == of_other) continue;
    if (std::regex_replace(of_first, by_chance, "") == std::regex_replace(of_other, by_chance, ""))
      continue;
    const std::string none = "(no more)";
    return fmt::format("event {} is\n  {}\nin one run and\n  {}\nin another", number,
                       has_first ? of_first : none, has_other ? of_other : none);
  }
}

}  // namespace

BaselineRuns run_baseline(Runner& runner, const Options& options,
                          const std::filesystem::path& folder, const std::function<bool()>& stops) {
  const std::filesystem::path kept = folder / "baseline";
  std::vector<Job> jobs;
  for (size_t i = 0; i < kRuns; ++i)
    jobs.push_back({.number = i, .scenario = "", .keep = kept / std::to_string(i + 1)});
  BaselineRuns runs;
  runs.facts.resize(kRuns + std::size(kLatencies));
  // No other run is made at the same time as the first one: if the first run fails, the others are
  // unnecessary.
  const auto take = [&](const Job& job, const RunFacts& facts) {
    runs.facts[job.number] = facts;
    require_success(facts, options);
  };
  const auto take_first = [&](const Job& job, const RunFacts& facts) {
    runs.needs_all_processors = runner.keeps_on_one_processor() && fails_by_itself(facts);
    if (!runs.needs_all_processors) take(job, facts);
  };
  runner.run({jobs[0]}, take_first, stops);
  if (runs.needs_all_processors && !stops()) {
    runner.use_all_processors();
    std::filesystem::remove_all(jobs[0].keep);
    runner.run({jobs[0]}, take, stops);
  }
  runs.events = read_events(kept / "1");
  std::error_code missing;
  const uintmax_t of_events = std::filesystem::file_size(kept / "1" / "events.jsonl", missing);
  if (!missing) runs.events_bytes = of_events;
  const uintmax_t of_journal = std::filesystem::file_size(kept / "1" / "journal", missing);
  if (!missing) runs.journal_bytes = of_journal;
  if (!stops() && runs.events.process_of_client.empty())
    throw ExploreError(shell_text(options.runs.command) +
                       " uses no RDMA: none of its processes opened a device. To find the reason: "
                       "rocemu doctor " +
                       options.runs.command.front());
  for (size_t i = 0; i < std::size(kLatencies); ++i)
    jobs.push_back({.number = kRuns + i,
                    .scenario = fmt::format("rules:\n  - {{on: link, do: {{latency: {}}}}}\n",
                                            kLatencies[i])});
  // Call sites are recorded in a separate run, because the library that reports them adds to the
  // programs' memory, which may change their output.
  const std::filesystem::path sited = kept / "sited";
  jobs.push_back({.number = jobs.size(), .scenario = "", .tells_call_sites = true, .keep = sited});
  runner.run(
      {jobs.begin() + 1, jobs.end()},
      [&](const Job& job, const RunFacts& facts) {
        if (job.tells_call_sites) return;
        runs.facts[job.number] = facts;
        if (job.number < kRuns) require_success(facts, options);
      },
      stops);
  if (stops()) return runs;
  add_call_sites(runs.events, sited, sited / kCallSitesFolder);
  for (size_t i = 1; i < kRuns && runs.difference.empty(); ++i)
    runs.difference =
        difference_of(kept / "1", kept / std::to_string(i + 1), options.runs.lockstep);
  std::error_code ignored;
  std::filesystem::remove_all(sited, ignored);
  for (size_t i = 1; i < kRuns; ++i)
    std::filesystem::remove_all(kept / std::to_string(i + 1), ignored);
  // A run that fails because of the extra latency shows nothing about the output of successful
  // runs, so it is left out.
  std::erase_if(runs.facts, [](const RunFacts& facts) { return facts.status != 0; });
  return runs;
}

Baseline make_baseline(const std::vector<RunFacts>& facts) {
  const auto mask = [&](const auto& get) {
    std::vector<std::string> texts;
    for (const RunFacts& one : facts) texts.push_back(get(one));
    return OutputMask(texts, facts.front().last_calls.size() > 1);
  };
  std::vector<Misuse> misuses;
  for (const RunFacts& one : facts)
    misuses.insert(misuses.end(), one.misuses.begin(), one.misuses.end());
  Baseline baseline{.facts = facts.front(),
                    .output = mask([](const RunFacts& one) { return one.output; }),
                    .errors = mask([](const RunFacts& one) { return one.errors; }),
                    .files = {},
                    .misuses = misuses_of(misuses)};
  // If a program outlives the command, timing decides whether a run observes the program's exit
  // status. So the baseline has the exit statuses of all runs.
  for (const RunFacts& one : facts)
    for (const auto& [process, statuses] : one.statuses)
      baseline.facts.statuses[process].insert(statuses.begin(), statuses.end());
  for (const auto& [name, contents] : facts.front().files) {
    baseline.files.emplace(name, mask([&file = name](const RunFacts& one) {
                             const auto found = one.files.find(file);
                             return found == one.files.end() ? "" : found->second;
                           }));
  }
  return baseline;
}

}  // namespace rocemu::explore
