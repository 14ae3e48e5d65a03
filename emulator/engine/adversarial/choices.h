// The choices of the adversary, in the order in which they are made. Each choice has a number
// within its class, starting at 1, which is the same for the same inputs and seed. A run can be
// limited to some choices (`--adversarial=placement:17`), so that a failure can be reduced to the
// few choices that it needs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/engine/config.h"
#include "emulator/engine/step.h"

namespace rocemu::engine::adversarial {

/// The choices of one class
class Choices {
 public:
  /// `step` must outlive this object.
  Choices(Class of, const FabricConfig& config, Step& step);

  /// Gives the choice the next number, and returns whether it is made. The caller must draw random
  /// numbers before this call, so that an omitted choice does not change other choices. `describe`
  /// returns what the choice does, as a sentence without a period. make() calls `describe` only if
  /// choices are reported.
  template <class Describe>
  bool make(Describe describe) {
    ++number_;
    if (!only_.empty() && !only_.contains(number_)) return false;
    if (is_reported_) step_.note(AdversarialChoice{class_, number_, describe()});
    return true;
  }

 private:
  const uint8_t class_;
  std::set<uint64_t> only_;  // empty: all
  const bool is_reported_;
  Step& step_;
  uint64_t number_ = 0;
};

/// The choices of each class that has choices. The class `undefined` has none: all of its effects
/// always occur.
struct AllChoices {
  AllChoices(const FabricConfig& config, Step& step);
  Choices placement, late_read, order, atomicity, relaxed;
};

/// Returns the delay as text, such as "10 us".
std::string in_words(Duration delay);

}  // namespace rocemu::engine::adversarial
