// `rocemu replay --sanitize`: judges a recording by the rules that need nothing but the engine.
// Where a report of `rocemu run --sanitize` has stacks, these have calls with their times and, of a
// request that failed, its wr_id.
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

/// Returns the rules of which a recording shows all that they are about.
sanitizer::Selection rules_for_recordings();

class RecordingJudge {
 public:
  explicit RecordingJudge(sanitizer::Selection rules) : rules_(std::move(rules)) {}

  bool looks_for(const sanitizer::Rule& rule) const { return rules_.contains(&rule); }
  void on_step(const journal::Step& step, const engine::Outputs& outputs);

  /// Returns the findings in the order in which they were found. The same mistake with the same
  /// objects is one finding.
  const std::vector<Misuse>& findings() const { return findings_; }

 private:
  using ByQp = std::pair<uint32_t, uint32_t>;  // of a client; or of a peer and the own one

  void read_verb(const journal::Step& step);
  void add(const sanitizer::EngineFinding& found);
  void read_completion(const engine::Completion& completion);

  const sanitizer::Selection rules_;
  std::map<uint32_t, std::string> processes_;  // "server#1", by client
  /// The places at which objects were created or destroyed, by client and title.
  std::map<std::pair<uint32_t, std::string>, FoundPlace> places_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> rkeys_;  // by client and region
  std::map<ByQp, uint32_t> peers_;                           // the QPs that QPs are connected to
  std::map<ByQp, size_t> unnamed_;       // findings about a request whose wr_id is not known yet
  std::map<std::string, size_t> known_;  // findings, by rule, process and objects
  std::vector<Misuse> findings_;
};

}  // namespace rocemu::command
