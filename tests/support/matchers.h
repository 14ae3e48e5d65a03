// Formats outputs as text, and matches them with the expectations of scripts.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "emulator/engine/base/counters.h"
#include "emulator/engine/engine.h"
#include "emulator/engine/events.h"
#include "emulator/engine/protocol/nak_codes.h"
#include "tests/support/packets.h"

namespace rocemu::test {

std::string to_string(abi::WcStatus status);
std::string to_string(abi::EventType type);
std::string to_string(abi::QpState state);
std::string to_string(const abi::Cqe& cqe);
std::string to_string(const engine::Output& output);

/// An expected output. `mismatch` returns a description of the difference from an actual output, or
/// "".
struct Expected {
  std::string text;
  std::function<std::string(const engine::Output&)> mismatch;

  Expected(std::string t, std::function<std::string(const engine::Output&)> m)
      : text(std::move(t)), mismatch(std::move(m)) {}
  Expected(const PacketSpec& spec);  // NOLINT: implicit; expects a frame with this packet
};

/// An expected completion. Members that were not set are not compared, except for the status, which
/// must be success unless another status was set.
class CompletionSpec {
 public:
  explicit CompletionSpec(uint64_t wr_id) : wr_id_(wr_id) {}

  CompletionSpec status(abi::WcStatus value) const {
    CompletionSpec spec = *this;
    spec.status_ = value;
    return spec;
  }
  CompletionSpec vendor(engine::VendorError value) const {
    CompletionSpec spec = *this;
    spec.vendor_ = value;
    return spec;
  }
  CompletionSpec bytes(uint32_t value) const {
    CompletionSpec spec = *this;
    spec.byte_len_ = value;
    return spec;
  }
  CompletionSpec imm(uint32_t value) const {
    CompletionSpec spec = *this;
    spec.imm_ = value;
    return spec;
  }
  CompletionSpec opcode(abi::WcOpcode value) const {
    CompletionSpec spec = *this;
    spec.opcode_ = value;
    return spec;
  }
  CompletionSpec wqe_count(uint32_t value) const {
    CompletionSpec spec = *this;
    spec.wqe_count_ = value;
    return spec;
  }
  CompletionSpec generation(uint32_t value) const {
    CompletionSpec spec = *this;
    spec.generation_ = value;
    return spec;
  }
  CompletionSpec on(abi::WorkQueue value) const {
    CompletionSpec spec = *this;
    spec.queue_ = value;
    return spec;
  }
  /// Expects IBV_WC_GRH.
  CompletionSpec grh() const {
    CompletionSpec spec = *this;
    spec.grh_ = true;
    return spec;
  }
  CompletionSpec from_qp(uint32_t value) const {
    CompletionSpec spec = *this;
    spec.src_qp_ = value;
    return spec;
  }
  // NOLINT: implicit, so that scripts can list completions among packets
  operator Expected() const;

 private:
  uint64_t wr_id_;
  abi::WcStatus status_ = abi::WcStatus::kSuccess;
  std::optional<engine::VendorError> vendor_;
  std::optional<uint32_t> byte_len_;
  std::optional<uint32_t> imm_;
  std::optional<abi::WcOpcode> opcode_;
  std::optional<uint32_t> wqe_count_;
  std::optional<uint32_t> generation_;
  std::optional<abi::WorkQueue> queue_;
  std::optional<uint32_t> src_qp_;
  bool grh_ = false;
};

/// Return the expected completion of a send, of a receive, and of either when the QP is in the
/// error state.
inline CompletionSpec completion(uint64_t wr_id) {
  return CompletionSpec(wr_id).on(abi::WorkQueue::kSend).opcode(abi::WcOpcode::kSend);
}
inline CompletionSpec received(uint64_t wr_id) {
  return CompletionSpec(wr_id).on(abi::WorkQueue::kRecv).opcode(abi::WcOpcode::kRecv);
}
inline CompletionSpec failed(uint64_t wr_id, abi::WcStatus status) {
  return CompletionSpec(wr_id).status(status);
}
inline CompletionSpec flushed(uint64_t wr_id) {
  return failed(wr_id, abi::WcStatus::kWrFlushErr).vendor(engine::VendorError::kFlushed);
}

Expected event(abi::EventType type, uint64_t element);
Expected completion_event(uint64_t cq_user_handle);
Expected cq_failed();
Expected violation();

uint64_t counter(const engine::Engine& engine, engine::Counter which, size_t device = 0);

}  // namespace rocemu::test

// Functions with which GoogleTest prints outputs.
namespace rocemu::engine {

void PrintTo(const Completion& output, std::ostream* os);
void PrintTo(const CqFailed& output, std::ostream* os);
void PrintTo(const CompletionEvent& output, std::ostream* os);
void PrintTo(const AsyncEvent& output, std::ostream* os);
void PrintTo(const DeviceLost& output, std::ostream* os);
void PrintTo(const ClientViolation& output, std::ostream* os);
void PrintTo(const TransmitFrame& output, std::ostream* os);
void PrintTo(const FrameTrace& output, std::ostream* os);
void PrintTo(const RuleFired& output, std::ostream* os);
void PrintTo(const DeviceChanged& output, std::ostream* os);
void PrintTo(const GroupChange& output, std::ostream* os);
void PrintTo(const CmEvent& output, std::ostream* os);
void PrintTo(const KillProcess& output, std::ostream* os);

}  // namespace rocemu::engine
