// One record of a journal: a step of the engine with its input, its accesses to the memory of
// clients, and its outputs. A record can also name the process of a client.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/events.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

enum class RecordKind : uint8_t {
  kStep = 1,
  kClient,  // the process of a client: for people, and to compare recordings
};

/// The process of a client
struct ClientName {
  engine::ClientId client;
  uint32_t pid = 0;
  std::string_view name;
};

void append(Appender& to, const ClientName& client);
/// Reads the record of a client's process. Returns false if the bytes are not such a record.
[[nodiscard]] bool parse(Bytes body, ClientName& client);

// ---- Steps ----------------------------------------------------------------------------------

/// Appends a part of a step. A record contains first the input, then each call of HostMemory when
/// it returns, and at the end the outputs.
void append_input(Appender& to, engine::Instant now, const engine::Input& input);
void append_outputs(Appender& to, const engine::Outputs& outputs, size_t before = 0);

/// A step as views into the record's bytes. `input` may refer to `request` and `frames`, so a Step
/// must not be moved.
struct Step {
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  engine::Instant now{};
  std::optional<engine::Input> input;
  abi::Request request{};
  std::vector<engine::ReceivedFrame> frames;
  Bytes calls;    // see memory_calls.h
  Bytes outputs;  // see OutputReader
};
[[nodiscard]] bool parse(Bytes body, Step& step);

// ---- Outputs --------------------------------------------------------------------------------

/// The size up to which frames are recorded completely. Of a longer frame, the record has only the
/// headers and the ICRC, which represents the payload. The capture beside the journal has all
/// frames completely.
inline constexpr size_t kWholeFrame = 384;
inline constexpr size_t kFrameHeaders = 128;

struct RecordedFrame {
  engine::Instant at{};                               // of a trace
  std::optional<engine::DeviceIndex> leaves_through;  // set if it left the fabric, without marks
  engine::FrameMarks marks;
  uint32_t size = 0;
  Bytes head;
};
struct RecordedViolation {
  engine::ClientId client;
  std::string_view reason;
};
struct RecordedCmEvent {
  engine::CmChannelId channel;
  abi::ucma::EventResponse event{};
};
struct RecordedRuleFired {
  std::string_view rule;
  std::string_view subject;
  std::optional<engine::DeviceIndex> device;
  std::optional<engine::QpNumber> qp;
  std::optional<engine::Owner> owner;
  std::optional<uint32_t> psn;
  engine::FrameFault frame;
};
struct RecordedCmReply {
  int32_t error = 0;
  Bytes response;
};

using RecordedOutput =
    std::variant<engine::Completion, engine::CqFailed, engine::CompletionEvent, engine::AsyncEvent,
                 engine::DeviceLost, RecordedViolation, RecordedFrame, RecordedCmEvent,
                 RecordedRuleFired, engine::DeviceChanged, abi::Reply, RecordedCmReply,
                 engine::GroupChange, engine::KillProcess>;

/// Iterates over a step's outputs.
class OutputReader {
 public:
  explicit OutputReader(Bytes outputs) : taker_(outputs) {}
  /// Returns the next output; nothing at the end, or if the bytes are invalid. In the latter case
  /// failed() is true.
  std::optional<RecordedOutput> next();
  bool failed() const { return taker_.failed(); }
  /// Returns the position of the next output in the bytes.
  size_t position() const { return taker_.position(); }

 private:
  Taker taker_;
};

}  // namespace rocemu::journal
