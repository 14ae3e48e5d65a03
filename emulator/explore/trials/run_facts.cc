#include "emulator/explore/trials/run_facts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "emulator/explore/files.h"
#include "emulator/os/threads/stacks.h"

namespace rocemu::explore {
namespace {

constexpr size_t kMaxOutput = size_t{256} * 1024;  // that is kept and compared

/// Returns the first bytes of the file, at most kMaxOutput.
std::string beginning_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxOutput, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

/// Returns the text without numbers that the system chooses: those of descriptors, ports, addresses
/// and processes.
std::string without_chance(const std::string& what) {
  static const std::regex kChance(
      R"( \((?:descriptor|futex|pid)[^)]*\)| from [0-9a-f.:]+ port \d+| to [0-9a-f.:]+ port \d+|, with 0 completions to be polled)");
  static const std::regex kCount(R"(, with \d+ completions? to be polled)");
  return std::regex_replace(std::regex_replace(what, kChance, ""), kCount,
                            ", with completions to be polled");
}

class ErrorReader {
 public:
  ErrorReader(RunFacts& facts, const RecordedEvents& events) : facts_(facts), events_(events) {}

  void read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) on_line(line);
    std::ranges::sort(facts_.waits);
    facts_.waits.erase(std::unique(facts_.waits.begin(), facts_.waits.end()), facts_.waits.end());
    // The daemon and `rocemu run` may both report a crash of the command, so duplicates are
    // removed.
    std::ranges::sort(facts_.crashes);
    facts_.crashes.erase(std::unique(facts_.crashes.begin(), facts_.crashes.end()),
                         facts_.crashes.end());
  }

 private:
  void on_line(const std::string& line) {
    // If the program's last line has no newline at its end, a message of rocemu follows on the same
    // line.
    static const std::regex kOurs(
        R"(rocemud?: (deadlock at |--timeout is over|(warning: )?\S+ \(pid \d+\) (received SIG|ended with status \d)))");
    std::smatch ours;
    if (std::regex_search(line, ours, kOurs) && ours.position() != 0) {
      on_line(ours.prefix());
      return on_line(line.substr(static_cast<size_t>(ours.position())));
    }
    if (line.starts_with("rocemud: ")) return on_daemon(line);
    if (line.starts_with("rocemu: deadlock at ")) {
      facts_.deadlock = is_report_ = true;
    } else if (line.starts_with("rocemu: --timeout is over")) {
      facts_.timeout = is_report_ = true;
    } else if (line.starts_with("rocemu: ")) {
      on_end(line);
      on_rocemu(line);
    } else if (is_report_) {
      on_report(line);
    } else {
      facts_.errors += line + "\n";
      on_errors(line);
    }
  }

  void on_daemon(const std::string& line) {
    on_end(line);
    if (line.find("No space left") != std::string::npos) facts_.trouble = line;
  }
  void on_end(const std::string& line) {
    static const std::regex kEnd(
        R"((\S+) \(pid (\d+)\) (?:received (SIG(?:SEGV|BUS|ILL|FPE|ABRT|TRAP|SYS))?|ended with status (\d+)))");
    std::smatch found;
    if (!std::regex_search(line, found, kEnd)) return;
    const std::string name = process(found[2], found[1]);
    facts_.failed.insert(name);
    if (found[3].matched) facts_.crashes.push_back(name + " received " + found[3].str());
    if (found[4].matched) facts_.statuses[name].insert(std::stoi(found[4]));
  }
  void on_rocemu(const std::string& line) {
    const bool matters = line.find("No space left") != std::string::npos ||
                         line.find("cannot") != std::string::npos ||
                         line.find("NIC is gone") != std::string::npos;
    if (matters) facts_.trouble = line;
  }
  /// Replaces "that of pid 12" by "that of server#1", because PIDs differ from run to run.
  std::string with_names(std::string what) const {
    static const std::regex kPids(R"(\bpid (\d+(?:, \d+)*))"), kNumber(R"(\d+)");
    for (std::smatch found; std::regex_search(what, found, kPids);) {
      const std::string numbers = found[1];
      std::set<std::string> names;
      for (std::sregex_iterator next(numbers.begin(), numbers.end(), kNumber), end; next != end;
           ++next)
        names.insert(process(next->str(), "another program"));
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
      what = found.prefix().str() + text + found.suffix().str();
    }
    return what;
  }
  void on_report(const std::string& line) {
    if (!line.starts_with("  ")) is_waits_ = line.starts_with("waiting threads");
    static const std::regex kThread(R"(^  pid (\d+)(?:, thread \d+)? \((.*?)\) (.*)$)");
    std::smatch found;
    if (!is_waits_ || !std::regex_match(line, found, kThread)) return;
    const std::string what = with_names(without_chance(found[3]));
    // A process that only starts other processes and waits for them is irrelevant.
    if (what.starts_with("waits for its children")) return;
    facts_.waits.push_back(process(found[1], found[2]) + " " + what);
  }
  /// Reads a line of a report by a compiler's sanitizer or by Valgrind.
  void on_errors(const std::string& line) {
    static const std::regex kReport(
        R"((AddressSanitizer|ThreadSanitizer|LeakSanitizer|MemorySanitizer): ([\w-]+)|runtime error: (.*)|ERROR SUMMARY: [1-9]|^==\d+== (Invalid (?:read|write|free)[^/]*))");
    std::smatch found;
    if (!std::regex_search(line, found, kReport)) return;
    std::string what = found[1].matched   ? found[1].str() + " " + found[2].str()
                       : found[3].matched ? "UndefinedBehaviorSanitizer " + found[3].str()
                       : found[4].matched ? "valgrind: " + found[4].str()
                                          : "valgrind reports errors";
    if (!is_reported_) facts_.crashes.push_back("a sanitizer reports " + what);
    is_reported_ = true;
  }

  std::string process(const std::string& pid, const std::string& comm) const {
    const auto found = events_.process_of_pid.find(std::stoull(pid));
    return found != events_.process_of_pid.end() ? found->second : comm;
  }

  RunFacts& facts_;
  const RecordedEvents& events_;
  bool is_report_ = false, is_waits_ = false, is_reported_ = false;
};

/// Returns the names of the calls that each process repeats at the end of an endless run. The
/// result hardly depends on the moment at which the run was ended.
std::map<std::string, std::string> late_calls(const RecordedEvents& events) {
  constexpr size_t kLate = 500;
  std::map<std::string, std::set<std::string>> calls;
  const size_t begin = events.list.size() - std::min(events.list.size(), kLate);
  for (size_t i = begin; i < events.list.size(); ++i) {
    const std::string call = events.list[i].call();
    if (!call.empty() && !events.list[i].process.empty())
      calls[events.list[i].process].insert(call);
  }
  std::map<std::string, std::string> texts;
  for (const auto& [process, names] : calls)
    for (const std::string& name : names)
      texts[process] += (texts[process].empty() ? "" : ", ") + name;
  return texts;
}

/// Returns the stacks of the processes that use RDMA. The stacks of other processes, such as a
/// shell that waits for these, are irrelevant.
std::map<std::string, std::vector<std::string>> stacks_in(const std::string& text,
                                                          const RecordedEvents& events) {
  static const std::regex kProcess(R"(^pid (\d+) \(.*\)(, which crashes)?:$)");
  std::map<std::string, std::vector<std::string>> stacks;
  std::string process, lines;
  const auto end_process = [&] {
    if (!process.empty()) stacks[process] = functions_in(lines);
    process.clear();
    lines.clear();
  };
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, kProcess)) {
      lines += line + "\n";
      continue;
    }
    end_process();
    const auto known = events.process_of_pid.find(std::stoull(found[1]));
    if (known != events.process_of_pid.end()) process = known->second;
  }
  end_process();
  return stacks;
}

}  // namespace

bool RunFacts::is_doubtful() const {
  const bool polls = deadlock && std::ranges::any_of(waits, [](const std::string& wait) {
                       return wait.find("polls") != std::string::npos;
                     });
  return !patiently && (polls || timeout) && !runaway && !flood;
}

RunFacts read_facts(const std::filesystem::path& dir, int status, const std::string& rule) {
  RunFacts facts;
  facts.status = status;
  const RecordedEvents events = read_events(dir);
  facts.end_ns = events.end_ns;
  facts.events = events.list.size();
  for (const RecordedEvent& event : events.list) {
    if (event.text("what") == "fault" && (rule.empty() || event.text("rule") == rule))
      facts.fired = true;
    const std::string call = event.call();
    if (!call.empty() && !event.process.empty()) facts.last_calls[event.process] = call;
  }
  facts.late_calls = late_calls(events);
  facts.left = objects_left(events);
  facts.output = beginning_of(dir / "stdout");
  ErrorReader(facts, events).read(beginning_of(dir / "stderr"));
  facts.misuses = read_misuses(dir / kMisuseFile);
  facts.stacks = stacks_in(contents_of(dir / kStacksFile), events);
  return facts;
}

Json RunFacts::to_json() const {
  const auto text = [](const std::string& value) {
    return Json::parse(Json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  Json json;
  json["status"] = status;
  json["deadlock"] = deadlock;
  json["timeout"] = timeout;
  json["flood"] = flood;
  json["runaway"] = runaway;
  json["patiently"] = patiently;
  json["end_ns"] = end_ns;
  json["events"] = events;
  json["fired"] = fired;
  json["without_fault"] = without_fault;
  json["output"] = text(output);
  json["errors"] = text(errors);
  json["waits"] = waits;
  json["crashes"] = crashes;
  json["failed"] = failed;
  json["statuses"] = statuses;
  json["last_calls"] = last_calls;
  json["late_calls"] = late_calls;
  json["stacks"] = stacks;
  json["left"] = left;
  Json compared = Json::object();
  for (const auto& [name, contents] : files) compared[name] = text(contents);
  json["files"] = compared;
  json["misuses"] = Json::array();
  for (const Misuse& misuse : misuses)
    json["misuses"].push_back(
        Json::parse(misuse.to_json().dump(-1, ' ', false, Json::error_handler_t::replace)));
  if (!stops.empty()) json["stops"] = to_text(stops);
  json["oracle"] = oracle;
  return json;
}

RunFacts RunFacts::from_json(const Json& json) {
  RunFacts facts;
  json.at("status").get_to(facts.status);
  json.at("deadlock").get_to(facts.deadlock);
  json.at("timeout").get_to(facts.timeout);
  json.at("flood").get_to(facts.flood);
  json.at("runaway").get_to(facts.runaway);
  json.at("patiently").get_to(facts.patiently);
  json.at("end_ns").get_to(facts.end_ns);
  json.at("events").get_to(facts.events);
  json.at("fired").get_to(facts.fired);
  facts.without_fault = json.value("without_fault", false);
  json.at("output").get_to(facts.output);
  json.at("errors").get_to(facts.errors);
  json.at("waits").get_to(facts.waits);
  json.at("crashes").get_to(facts.crashes);
  json.at("failed").get_to(facts.failed);
  json.at("statuses").get_to(facts.statuses);
  json.at("last_calls").get_to(facts.last_calls);
  json.at("late_calls").get_to(facts.late_calls);
  json.at("stacks").get_to(facts.stacks);
  json.at("left").get_to(facts.left);
  json.at("files").get_to(facts.files);
  for (const Json& misuse : json.at("misuses")) facts.misuses.push_back(Misuse::from_json(misuse));
  if (json.contains("stops")) facts.stops = stops_of(json.at("stops").get<std::string>());
  json.at("oracle").get_to(facts.oracle);
  return facts;
}

}  // namespace rocemu::explore
