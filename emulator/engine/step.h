// The present step: its time, and the outputs to which it adds
#pragma once

#include <utility>

#include "emulator/engine/base/time.h"
#include "emulator/engine/events.h"

namespace rocemu::engine {

class Step {
 public:
  void begin(Instant now, Outputs& outputs) {
    now_ = now;
    outputs_ = &outputs;
  }
  Instant now() const { return now_; }
  template <class Kind>
  void emit(Kind output) {
    outputs_->list.emplace_back(std::move(output));
  }
  void emit_capture(PortCapture capture) { outputs_->port_captures.push_back(std::move(capture)); }
  void note(const Misuse& misuse) { outputs_->misuses.push_back(misuse); }
  void note(AdversarialChoice choice) { outputs_->choices.push_back(std::move(choice)); }

 private:
  Instant now_{};
  Outputs* outputs_ = nullptr;
};

}  // namespace rocemu::engine
