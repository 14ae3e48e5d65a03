// Reads the findings of a run with --sanitize (abi/sanitizer_log.h), and looks up the source lines
// of their stacks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/sanitizer/sanitizer_rule.h"

namespace rocemu::command {

struct StackFrame {
  std::string function;  // without arguments; empty if unknown
  std::string file;      // empty if unknown
  uint32_t line = 0;
  std::string module;   // the program or library
  uint64_t offset = 0;  // in the function or, if it is unknown, in the module
};

struct FoundCallSite {
  std::string what;  // "posted"
  std::string call;  // "ibv_post_recv"
  double time_s = 0;
  /// The frames of the program, innermost first. Frames of the RDMA libraries are left out.
  std::vector<StackFrame> stack;
};

struct Misuse {
  const sanitizer::Rule* rule = nullptr;
  std::string message;  // a sentence that begins with the process
  std::string process;  // "server#1"
  std::vector<FoundCallSite> sites;
  uint64_t count = 1;
};

/// Selects the waits that count as findings. While a process runs, another of its threads can still
/// end a wait.
enum class Waits {
  kAll,      // the run is over
  kOfEnded,  // only waits of processes that have ended
};

/// The findings of a run, which may still be running.
class FindingReader {
 public:
  explicit FindingReader(std::string directory);
  ~FindingReader();
  FindingReader(const FindingReader&) = delete;
  FindingReader& operator=(const FindingReader&) = delete;

  /// Reads the new entries of the log. Returns all findings so far, in the order in which they were
  /// found. Findings that differ only in numbers are merged.
  std::vector<Misuse> read(Waits waits);

 private:
  class Log;
  class Symbols;
  std::string directory_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Symbols> symbols_;
};

/// Returns a text that is the same for all findings of one mistake at the same call sites.
std::string identity_of(const Misuse& finding);

}  // namespace rocemu::command
