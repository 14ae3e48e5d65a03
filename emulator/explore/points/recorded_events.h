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
  std::string process;  // "server#1"; empty if it is of none
  /// The call stack of a call: equal for calls of a process with the same stack; empty if unknown.
  std::string call_site = {};
  /// The name of a call whose site is known, and its number among the process's calls of that name,
  /// from 1. A post of ibv_bind_mw(3) is recorded as one of ibv_post_send(3).
  std::string call_name = {};
  uint64_t call_number = 0;
  /// If true, a work request was posted after others by the same call.
  bool is_of_list = false;

  std::string text(const char* key) const;
  uint64_t number(const char* key) const;
  int64_t time_ns() const { return static_cast<int64_t>(number("t")); }
  /// "reg_mr", "rdma_connect", "post_send", as rules call it; empty if it is no call of a program.
  std::string call() const;
};

struct RecordedEvents {
  std::vector<RecordedEvent> list;
  std::map<uint64_t, std::string> process_of_client;
  std::map<uint64_t, std::string> process_of_pid;
  /// All that a process was: it may have executed another program.
  std::map<uint64_t, std::vector<std::string>> processes_of_pid;
  int64_t end_ns = 0;
};

/// A file that is cut off is read as far as it goes. `dir` is that of the recording.
RecordedEvents read_events(const std::filesystem::path& dir);

/// Adds calls and their sites to the events, from another run without a fault whose programs
/// reported them. `dir` is the directory of its recording, `sites` that of its call sites.
/// Processes that made other calls in that run get none.
void add_call_sites(RecordedEvents& events, const std::filesystem::path& dir,
                    const std::filesystem::path& sites);

/// How many objects each process made and did not destroy, by "server#1 MR".
std::map<std::string, int64_t> objects_left(const RecordedEvents& events);

}  // namespace rocemu::explore
