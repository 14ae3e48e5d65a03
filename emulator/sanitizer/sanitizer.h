// All checks of one program, together with the objects that the checks use
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

/// All checks of one program. Only one thread at a time may call this class, which the caller must
/// ensure.
class Sanitizer {
 public:
  Sanitizer(const Selection& selection, Host& host) {
    for (const Rule* rule : rules())
      if (rule->make != nullptr && selection.contains(rule)) add(rule->make(host));
  }

  Objects& objects() { return objects_; }
  /// Adds a check, which belongs to a rule or to the host itself.
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
