// The events.jsonl of a recording, with the process of each event.
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
  /// The call stack of a call. It is equal for calls of a process with the same stack, and empty if
  /// it is unknown.
  std::string call_site = {};
  /// The name of a call whose site is known, and its number among the process's calls with that
  /// name, from 1. A post of ibv_bind_mw(3) is recorded as one of ibv_post_send(3).
  std::string call_name = {};
  uint64_t call_number = 0;
  /// If true, a work request was posted after others by the same call.
  bool is_of_list = false;

  std::string text(const char* key) const;
  uint64_t number(const char* key) const;
  int64_t time_ns() const { return static_cast<int64_t>(number("t")); }
  /// Returns the name that rules use, such as "reg_mr", "rdma_connect" or "post_send"; empty if the
  /// event is not a call of a program.
  std::string call() const;
};

struct RecordedEvents {
  std::vector<RecordedEvent> list;
  std::map<uint64_t, std::string> process_of_client;
  std::map<uint64_t, std::string> process_of_pid;
  /// All names that a process had: it may have executed another program.
  std::map<uint64_t, std::vector<std::string>> processes_of_pid;
  int64_t end_ns = 0;
};

/// Reads the events of the recording in `dir`. A truncated file is read up to its last complete
/// line.
RecordedEvents read_events(const std::filesystem::path& dir);

/// Adds calls and their sites to the events, from another run without a fault whose programs
/// reported them. `dir` is the directory of that run's recording, `sites` that of its call sites.
/// Processes that made other calls in that run get no sites.
void add_call_sites(RecordedEvents& events, const std::filesystem::path& dir,
                    const std::filesystem::path& sites);

/// Returns the number of objects that each process created and did not destroy, by "server#1 MR".
std::map<std::string, int64_t> objects_left(const RecordedEvents& events);

}  // namespace rocemu::explore
