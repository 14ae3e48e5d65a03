// The part of a program's output that depends on time alone: durations, and what differs between
// runs without a fault on links of another latency. There a run with a fault may differ too, which
// is not an error.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace rocemu::explore {

class OutputMask {
 public:
  /// Compares the outputs of runs that succeeded; the first is the baseline's. With several writers
  /// the order of lines is only the order in which the writers finish them, and does not count.
  explicit OutputMask(const std::vector<std::string>& outputs, bool has_several_writers = false);

  /// Returns whether the output agrees with the baseline's in everything that does not depend on
  /// time.
  bool agrees(const std::string& output) const;
  /// The first line that does not; for a reader.
  std::string difference(const std::string& output) const;

  size_t lines() const { return baseline_.size(); }
  size_t masked_lines() const { return masked_.size(); }
  /// Nothing can be compared: even the number of lines depends on time.
  bool is_useless() const { return useless_; }

 private:
  std::vector<std::string> forms_of(const std::string& output) const;

  std::vector<std::string> baseline_;  // in order, without masked numbers
  std::set<std::string> masked_;       // lines without their numbers
  bool unordered_ = false;
  bool useless_ = false;
};

}  // namespace rocemu::explore
