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
  /// Of a call: equal for those of a process that came by the same call stack; empty if unknown.
  std::string call_site = {};
  /// Of a call whose site is known: its name, and which one of that name it is of its process, from
  /// 1. What ibv_bind_mw(3) posts is recorded as if ibv_post_send(3) had.
  std::string call_name = {};
  uint64_t call_number = 0;
  /// Of a work request that was posted with others before it, by the same call.
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

/// Fills in what RecordedEvent says of calls and their sites by what the programs of another run,
/// without fault as well, told of theirs. `dir` is that of its recording, `sites` of its call
/// sites. Of a process that made other calls there nothing is known.
void add_call_sites(RecordedEvents& events, const std::filesystem::path& dir,
                    const std::filesystem::path& sites);

/// How many objects each process made and did not destroy, by "server#1 MR".
std::map<std::string, int64_t> objects_left(const RecordedEvents& events);

}  // namespace rocemu::explore
