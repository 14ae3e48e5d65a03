#include "emulator/command/determinism/explanation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/determinism/cycle_counter.h"
#include "emulator/command/programs/executable.h"
#include "emulator/journal/canonical.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLinesBefore = 5;

/// The names of the events that programs cause. The NIC causes all other events.
constexpr std::array<std::string_view, 10> kCalls = {
    "attach",        "detach",        "verb",       "post_send",          "post_recv",
    "post_srq_recv", "req_notify_cq", "cm_command", "open_event_channel", "close_event_channel"};

std::string file_of(const RecordedRun& run, const char* name) {
  return run.dir.string() + name;
}

/// An event of a recording, with the name of its process.
struct Event {
  Json json;
  std::string process;  // empty if there is none, or it is unknown

  std::string text(const char* key) const {
    return json.contains(key) ? json[key].get<std::string>() : "";
  }
  bool is_call() const { return std::ranges::find(kCalls, text("what")) != kCalls.end(); }
  /// Returns the event's name, such as "verb create_qp", "post_send" or "cm_command connect".
  std::string name() const {
    std::string name = text("what");
    for (const char* key : {"verb", "command", "message", "event"})
      if (json.contains(key)) name += " " + text(key);
    return name;
  }
  std::string describe() const {
    char time[32];
    std::snprintf(time, sizeof time, "%.6f s: ", json.value("t", 0.0) / 1e9);
    std::string line = time + (process.empty() ? "" : process + ": ") + name();
    for (const auto& [key, value] : json.items()) {
      static constexpr std::array<std::string_view, 7> kSaid = {
          "t", "what", "client", "verb", "command", "message", "event"};
      if (std::ranges::find(kSaid, key) != kSaid.end()) continue;
      line += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
    }
    return line;
  }
  /// If both events are the same call of the same process, returns the names of the fields that
  /// differ; else an empty text.
  std::string differing_fields(const Event& other) const {
    if (process != other.process || name() != other.name()) return "";
    std::string fields;
    for (const auto& [key, value] : json.items()) {
      if (other.json.contains(key) && other.json[key] == value) continue;
      fields += (fields.empty() ? "" : ", ") + (key == "t" ? std::string("time") : key);
    }
    return fields;
  }
};

bool names_a_process(const std::string& line) {
  return line.find(R"("what":"client")") != std::string::npos;
}

/// Reads events.jsonl line by line.
class EventReader {
 public:
  explicit EventReader(const RecordedRun& run)
      : path_(file_of(run, journal::kEventsFile)), stream_(path_) {}

  /// Returns the next line without its PID, which the system chooses; nothing at the end of the
  /// file.
  const std::optional<std::string>& next() {
    std::string line;
    line_.reset();
    if (!std::getline(stream_, line)) return line_;
    static const std::regex kPid(R"re(,"pid":\d+)re");
    line_ = names_a_process(line) ? std::regex_replace(line, kPid, "") : line;
    return line_;
  }
  const std::optional<std::string>& line() const { return line_; }
  Event event(const std::string& line) {
    Event event{Json::parse(line), ""};
    if (!event.json.contains("client")) return event;
    const auto client = event.json["client"].get<uint64_t>();
    const std::string name = name_of(client);
    event.process = "client " + std::to_string(client) + (name.empty() ? "" : " (" + name + ")");
    return event;
  }

 private:
  /// Returns the name of the client's process. Searches all lines for it, since the line that
  /// contains the name may follow other events of the client.
  std::string name_of(uint64_t client) {
    if (names_.empty()) {
      std::ifstream all(path_);
      for (std::string line; std::getline(all, line);) {
        if (!names_a_process(line)) continue;
        const Json json = Json::parse(line);
        names_[json["client"].get<uint64_t>()] = json["comm"].get<std::string>();
      }
    }
    const auto found = names_.find(client);
    return found == names_.end() ? "" : found->second;
  }

  std::string path_;
  std::ifstream stream_;
  std::optional<std::string> line_;
  std::map<uint64_t, std::string> names_;
};

/// The kernel chooses process IDs, and a program may depend on them: Open MPI derives the identity
/// of a job from its process ID.
constexpr const char* kAboutProcessNumbers =
    "if the programs depend on their process IDs, use this command, which "
    "gives them the same IDs in each run:\n  unshare -rpf --mount-proc "
    "rocemu run --lockstep --record DIR -- COMMAND\n";

/// Explains what caused the first difference, where one recording has event `a` and the other has
/// `b`. The NIC's behavior depends only on what programs do and when, so a program is the cause.
std::string cause(const std::optional<Event>& a, const std::optional<Event>& b) {
  if (a && b) {
    const std::string fields = a->differing_fields(*b);
    if (!fields.empty() && a->is_call())
      return a->process + " made the same call, " + a->name() + ", with another " + fields;
    if (a->is_call() && b->is_call())
      return a->process + " called " + a->name() + " next in one run, and " + b->process +
             " called " + b->name() + " next in the other";
  }
  for (const auto* one : {&a, &b}) {
    if (*one && (*one)->is_call())
      return (*one)->process + " called " + (*one)->name() +
             " in one run, and not at this point in the other";
  }
  return "no call differs up to here: the time, or the memory that the NIC reads, differs";
}

std::string explain_events(const RecordedRun& first, const RecordedRun& other) {
  EventReader a(first), b(other);
  std::deque<std::string> before;
  for (size_t number = 1;; ++number) {
    if (a.next() == b.next()) {
      if (!a.line()) return "";
      before.push_back(*a.line());
      if (before.size() > kLinesBefore) before.pop_front();
      continue;
    }
    std::string text = "their recordings first differ at line " + std::to_string(number) + " of " +
                       std::string(journal::kEventsFile + 1) + "; before it, in both:\n";
    for (const std::string& line : before) text += "  " + a.event(line).describe() + "\n";
    std::optional<Event> of_a, of_b;
    if (a.line()) of_a = a.event(*a.line());
    if (b.line()) of_b = b.event(*b.line());
    const std::string end = "(no more)";
    text += first.name + ": " + (of_a ? of_a->describe() : end) + "\n";
    text += other.name + ": " + (of_b ? of_b->describe() : end) + "\n";
    return text + "cause: " + cause(of_a, of_b) + "\n" + kAboutProcessNumbers;
  }
}

std::string contents_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Returns the number of the first frame that differs between two captures, counted from 1.
size_t first_differing_frame(std::string_view a, std::string_view b) {
  constexpr size_t kFileHeader = 24, kFrameHeader = 16, kLengthAt = 8;
  size_t at = kFileHeader;
  for (size_t number = 1;; ++number) {
    uint32_t length = 0;
    if (at + kFrameHeader > a.size()) return number;
    std::memcpy(&length, a.data() + at + kLengthAt, sizeof length);
    const size_t size = kFrameHeader + length;
    if (at > b.size() || a.substr(at, size) != b.substr(at, size)) return number;
    at += size;
  }
}

std::string explain_frames(const RecordedRun& first, const RecordedRun& other) {
  const std::string a = contents_of(file_of(first, journal::kCaptureFile));
  const std::string b = contents_of(file_of(other, journal::kCaptureFile));
  if (a == b) return "";
  return "their captures differ from frame " + std::to_string(first_differing_frame(a, b)) +
         " on\n";
}

std::string explain_text(const RecordedRun& first, const RecordedRun& other, const char* what,
                         std::string RecordedRun::*text) {
  if (first.*text == other.*text) return "";
  std::istringstream a(first.*text), b(other.*text);
  for (size_t number = 1;; ++number) {
    std::string of_a, of_b;
    const bool has_a = static_cast<bool>(std::getline(a, of_a));
    const bool has_b = static_cast<bool>(std::getline(b, of_b));
    if (has_a && has_b && of_a == of_b) continue;
    if (!has_a && !has_b) return std::string("the end of ") + what + " differs\n";
    const std::string end = "(no more)";
    return std::string(what) + " differs in line " + std::to_string(number) + ":\n" + first.name +
           ": " + (has_a ? of_a : end) + "\n" + other.name + ": " + (has_b ? of_b : end) + "\n";
  }
}

std::string explain_status(const RecordedRun& first, const RecordedRun& other) {
  if (first.status == other.status) return "";
  return "exit status: " + first.name + ": " + std::to_string(first.status) + ", " + other.name +
         ": " + std::to_string(other.status) + "\n";
}

/// Returns whether `rocemu diff` finds no difference between the recordings.
bool are_same_in_canonical_form(const RecordedRun& first, const RecordedRun& other) {
  try {
    uint64_t lines = 0;
    return !journal::compare_recordings(first.dir.string(), other.dir.string(), &lines);
  } catch (const journal::JournalError&) {
    return false;
  }
}

/// Returns the files of the programs that the command names, possibly in a shell command line, and
/// of the programs that used the NIC.
std::set<std::string> programs_of(const RecordedRun& run, const Arguments& command) {
  std::set<std::string> names;
  for (const std::string& argument : command) {
    std::string words = argument;
    std::ranges::replace_if(
        words, [](char c) { return std::string_view(";&|()'\"`").find(c) != std::string::npos; },
        ' ');
    std::istringstream stream(words);
    for (std::string word; stream >> word;) names.insert(word);
  }
  EventReader reader(run);
  while (reader.next()) names.insert(reader.event(*reader.line()).text("comm"));
  std::set<std::string> files;
  for (const std::string& name : names) {
    try {
      files.insert(find_executable(name));
    } catch (const Error&) {  // a word that names no program
    }
  }
  return files;
}

/// Explains a difference in the output of two runs whose recordings are the same.
std::string explain_outputs(const RecordedRun& run, const Arguments& command) {
  std::string text =
      "cause: not the NIC, since both recordings are the same, but for example "
      "process IDs, TCP ports, processor time or input from outside the run\n";
  for (const std::string& program : programs_of(run, command)) {
    if (reads_cycle_counter(program))
      text += program + " reads the processor's cycle counter, which shows real time\n";
  }
  return text;
}

std::string explain_notes(const RecordedRun& run) {
  std::string text;
  for (const std::string& note : run.notes) text += "of " + run.name + ": " + note + "\n";
  return text;
}

}  // namespace

std::string explain_difference(const RecordedRun& first, const RecordedRun& other,
                               const Arguments& command) {
  const std::string events = explain_events(first, other);
  const std::string frames = explain_frames(first, other);
  const std::string outputs = explain_status(first, other) +
                              explain_text(first, other, "standard output", &RecordedRun::output) +
                              explain_text(first, other, "standard error", &RecordedRun::errors);
  if (events.empty() && frames.empty() && outputs.empty()) return "";
  std::string text = events;
  if (!events.empty() && are_same_in_canonical_form(first, other))
    text += "(rocemu diff treats both as equal: they differ only in addresses, PSNs or names)\n";
  text += frames + outputs;
  if (events.empty() && !frames.empty())
    text +=
        "cause: a program sends different data; the NIC does the same in both "
        "runs\n" +
        std::string(kAboutProcessNumbers);
  if (events.empty() && frames.empty()) text += explain_outputs(first, command);
  return text + explain_notes(first) + explain_notes(other);
}

size_t count_events(const RecordedRun& run) {
  EventReader reader(run);
  size_t count = 0;
  while (reader.next()) ++count;
  return count;
}

}  // namespace rocemu::command
