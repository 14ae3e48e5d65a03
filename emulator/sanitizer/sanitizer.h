// The checks of one program, and what they look at.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "emulator/sanitizer/check.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

/// Guarded by its user: one thread at a time.
class Sanitizer {
 public:
  Sanitizer(const Selection& selection, Host& host) {
    for (const Rule* rule : rules())
      if (rule->make != nullptr && selection.contains(rule)) checks_.push_back(rule->make(host));
  }

  Objects& objects() { return objects_; }
  /// Shows a check of the host's own all events, too.
  void add(std::unique_ptr<Check> check) { checks_.push_back(std::move(check)); }

  template <class Event>
  void tell(const Event& event) {
    for (const std::unique_ptr<Check>& check : checks_) check->on(event);
  }

 private:
  Objects objects_;
  std::vector<std::unique_ptr<Check>> checks_;
};

}  // namespace rocemu::sanitizer
