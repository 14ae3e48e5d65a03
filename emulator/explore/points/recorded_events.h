// Reads the events in a recording's events.jsonl, and finds the process of each event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rocemu::explore {

using Json = nlohmann::ordered_json;

struct RecordedEvent {
  Json json;
  std::string process;  // "server#1"; empty if it has no process
  /// Identifies the call stack of a call. The value is equal for calls of a process with the same
  /// stack, and empty if the stack is unknown.
  std::string call_site = {};
  /// If the call site is known: the name of the call, and its number, from 1, among the process's
  /// calls with that name. A post by ibv_bind_mw(3) is recorded as a post by ibv_post_send(3).
  std::string call_name = {};
  uint64_t call_number = 0;
  /// If true, the event is a work request that a call posted after another one: only the first
  /// request of a list counts as the call.
  bool is_of_list = false;

  std::string text(const char* key) const;
  uint64_t number(const char* key) const;
  int64_t time_ns() const { return static_cast<int64_t>(number("t")); }
  /// Returns the name of the call in rules, such as "reg_mr", "rdma_connect" or "post_send"; empty
  /// if the event is not a call of a program.
  std::string call() const;
};

struct RecordedEvents {
  std::vector<RecordedEvent> list;
  std::map<uint64_t, std::string> process_of_client;
  std::map<uint64_t, std::string> process_of_pid;
  /// All names that a process had, by PID. A process has several names if it executed another
  /// program.
  std::map<uint64_t, std::vector<std::string>> processes_of_pid;
  int64_t end_ns = 0;
};

/// Reads the events of the recording in `dir`. A truncated file is read up to its last complete
/// line.
RecordedEvents read_events(const std::filesystem::path& dir);

/// Adds names of calls and call sites to the events. They come from another run without a fault,
/// whose programs reported their call sites. `dir` is the directory of that run's recording, and
/// `sites` the directory of its call sites. A process that made other calls in that run gets no
/// call sites.
void add_call_sites(RecordedEvents& events, const std::filesystem::path& dir,
                    const std::filesystem::path& sites);

/// Returns the number of objects that each process created and did not destroy. The keys are texts
/// such as "server#1 MR".
std::map<std::string, int64_t> objects_left(const RecordedEvents& events);

}  // namespace rocemu::explore
