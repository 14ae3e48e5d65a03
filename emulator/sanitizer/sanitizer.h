// The checks of one program, and the objects that they use
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

/// The checks of a program. One thread at a time may use them; the user of this class must
/// guarantee that.
class Sanitizer {
 public:
  Sanitizer(const Selection& selection, Host& host) {
    for (const Rule* rule : rules())
      if (rule->make != nullptr && selection.contains(rule)) add(rule->make(host));
  }

  Objects& objects() { return objects_; }
  /// Adds a check, of a rule or of the host itself.
  void add(WantingCheck added) {
    for (size_t event = 0; event < kEvents; ++event)
      if ((added.wanted >> event & 1) != 0) wanting_[event].push_back(added.check.get());
    checks_.push_back(std::move(added.check));
  }

  template <class Event>
  void tell(const Event& event) {
    for (Check* const check : wanting_[number_of<Event>()]) check->on(event);
  }

 private:
  Objects objects_;
  std::vector<std::unique_ptr<Check>> checks_;
  std::array<std::vector<Check*>, kEvents> wanting_;  // by event
};

}  // namespace rocemu::sanitizer
