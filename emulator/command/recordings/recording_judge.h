// `rocemu replay --sanitize`: checks a recording by the rules that need only the engine. A report
// of `rocemu run --sanitize` has stacks. A report of this class has the names and times of calls
// instead and, for a request that failed, its wr_id.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"
#include "emulator/journal/step_record.h"
#include "emulator/sanitizer/nic/engine_findings.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {

/// Returns the rules that can be checked with a recording alone, without the program.
sanitizer::Selection rules_for_recordings();

class RecordingJudge {
 public:
  explicit RecordingJudge(sanitizer::Selection rules) : rules_(std::move(rules)) {}

  bool looks_for(const sanitizer::Rule& rule) const { return rules_.contains(&rule); }
  void on_step(const journal::Step& step, const engine::Outputs& outputs);

  /// Returns the findings in the order in which they were found. If the same mistake with the same
  /// objects was found several times, it is one finding.
  const std::vector<Misuse>& findings() const { return findings_; }

 private:
  using ByQp = std::pair<uint32_t, uint32_t>;  // (client, own QP) or (peer's QP, own QP)

  void read_verb(const journal::Step& step);
  void add(const sanitizer::EngineFinding& found);
  void read_completion(const engine::Completion& completion);

  const sanitizer::Selection rules_;
  std::map<uint32_t, std::string> processes_;  // "server#1", by client
  /// The call sites where objects were created or destroyed, by the client and the object's title.
  std::map<std::pair<uint32_t, std::string>, FoundCallSite> sites_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> rkeys_;  // by (client, MR)
  std::map<ByQp, uint32_t> peers_;                           // the QPs that QPs are connected to
  std::map<ByQp, size_t> unnamed_;       // indexes of findings whose wr_id is unknown
  std::map<std::string, size_t> known_;  // indexes of findings, by rule, process and objects
  std::vector<Misuse> findings_;
};

}  // namespace rocemu::command
