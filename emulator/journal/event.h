// Describes a step of a journal as events with named fields, for people and scripts. A line of
// events.jsonl is one event. `rocemu replay` shows events, and `rocemu diff` compares them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/base/time.h"
#include "emulator/engine/config.h"
#include "emulator/journal/step_record.h"

namespace rocemu::journal {

enum class FieldKind : uint8_t {
  kNumber,
  kText,
  kDetail,  // text that differs from run to run
  kClient,  // number: ClientId
  kQp,      // number: of the object
  kCq,
  kPd,
  kMr,
  kSrq,
  kAh,
  kXrcd,
  kDm,
  kMrKey,    // number: an L_Key or R_Key
  kAddress,  // number: an address, differs from run to run
  kName,     // number: chosen by the program or the system, differs from run to run
  kSendPsn,  // number: a PSN of packets that the QP `of` sends
  kRecvPsn,  // number: a PSN of packets that the QP `of` receives
  kDevice,   // number: DeviceIndex; text: its name, once it is known
};

struct Field {
  std::string_view key;  // a string literal
  FieldKind kind;
  uint64_t number = 0;
  uint32_t of = 0;
  std::string text = {};
};

struct Event {
  engine::Instant at{};
  /// The name of the event, such as "verb", "post_send", "post_recv", "completion", "async_event",
  /// "cm_message" or "frame".
  std::string_view what;
  std::vector<Field> fields;

  Event& add(std::string_view key, uint64_t number) {
    fields.push_back({key, FieldKind::kNumber, number});
    return *this;
  }
  Event& add(std::string_view key, FieldKind kind, uint64_t number, uint32_t of = 0) {
    fields.push_back({key, kind, number, of});
    return *this;
  }
  Event& add(std::string_view key, std::string_view text) {
    fields.push_back({key, FieldKind::kText, 0, 0, std::string(text)});
    return *this;
  }
  Event& add_detail(std::string_view key, std::string text) {
    fields.push_back({key, FieldKind::kDetail, 0, 0, std::move(text)});
    return *this;
  }
  const Field* find(std::string_view key) const;
};

/// Selects the frames that become events: only messages of the connection manager, as in
/// events.jsonl, or all frames.
enum class Frames : uint8_t { kConnectionManager, kAll };

/// The first of the client numbers for the daemon itself, which queries devices. Events of these
/// clients are omitted.
inline constexpr uint32_t kFirstOwnClient = 0x8000'0000;

/// Appends the events of a step, or of a client's process, to `events`.
void describe(const Step& step, Frames frames, std::vector<Event>& events);
void describe(engine::Instant now, const ClientName& client, std::vector<Event>& events);

/// Returns the event for the step's input; an event without a name if there is nothing to report.
Event describe_input(const Step& step);
/// Returns the event for an output; an event without a name for a reply.
Event describe(engine::Instant now, const RecordedOutput& output);

/// Adds the names of the devices to the fields that contain a device's number.
void name_devices(const engine::FabricConfig& fabric, std::vector<Event>& events);
void name_devices(const engine::FabricConfig& fabric, Event& event);

/// Returns the event as a line of JSON, without the newline.
std::string to_json(const Event& event);

}  // namespace rocemu::journal
