// Reads the reports of the verbs sanitizer about one run (docs/sanitizer.md), which `rocemu run
// --sanitize-report` has written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"

namespace rocemu::explore {

struct Misuse {
  std::string rule;  // "posted-after-error"
  bool is_error = false;
  std::string message;  // a sentence that begins with the process
  std::string program;  // the process without its number
  /// The call sites, such as "posted by ibv_post_send: send() hello.c:44 < main() ...". The last
  /// one is that of the mistake.
  std::vector<std::string> places;
  std::string where;    // the last place: "send() at hello.c:44"; empty if unknown
  std::string refused;  // the verb that failed, if that is the report: "destroy_cq"

  Json to_json() const;
  static Misuse from_json(const Json& json);
};

inline constexpr char kMisuseFile[] = "misuse.json";

/// Reads the reports in the file. Returns an empty list if the file is missing, or is incomplete
/// because the run was killed.
std::vector<Misuse> read_misuses(const std::filesystem::path& file);

}  // namespace rocemu::explore
