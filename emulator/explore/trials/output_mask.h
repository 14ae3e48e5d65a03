// Finds the part of a program's output that depends only on time: durations, and everything that
// differs between runs without a fault whose links have different latencies. If the output of a run
// with a fault differs from the baseline's only in this part, it is correct.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace rocemu::explore {

class OutputMask {
 public:
  /// Compares the outputs of runs that succeeded, the baseline's output first. With several
  /// writers, the order of lines is ignored, since it only depends on which program wrote first.
  explicit OutputMask(const std::vector<std::string>& outputs, bool has_several_writers = false);

  /// Returns whether the output agrees with the baseline's output in everything that does not
  /// depend on time.
  bool agrees(const std::string& output) const;
  /// Returns a description, for users, of the first line that does not agree with the baseline's
  /// output.
  std::string difference(const std::string& output) const;

  size_t lines() const { return baseline_.size(); }
  size_t masked_lines() const { return masked_.size(); }
  /// Returns true if outputs cannot be compared at all, because even the number of lines depends on
  /// time.
  bool is_useless() const { return useless_; }

 private:
  std::vector<std::string> forms_of(const std::string& output) const;

  std::vector<std::string> baseline_;  // in order, without masked numbers
  std::set<std::string> masked_;       // lines without their numbers
  bool unordered_ = false;
  bool useless_ = false;
};

}  // namespace rocemu::explore
