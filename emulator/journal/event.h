// Events for people and scripts: a step of a journal as events with named fields. A line of
// events.jsonl is one event; `replay` shows events, `diff` compares them.
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
  /// "verb", "post_send", "post_recv", "completion", "async_event", "cm_message", "frame" ...
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

/// The frames that are events. Frames are in the capture; an event log has only those that are
/// messages of the connection manager.
enum class Frames : uint8_t { kConnectionManager, kAll };

/// The first of the client numbers that belong to the daemon itself, which queries devices. No
/// other reader needs their events.
inline constexpr uint32_t kFirstOwnClient = 0x8000'0000;

/// Appends the events of the step.
void describe(const Step& step, Frames frames, std::vector<Event>& events);
void describe(engine::Instant now, const ClientName& client, std::vector<Event>& events);

/// Returns the event of the step's input; without a name if there is nothing to report.
Event describe_input(const Step& step);
/// Returns the event of an output; without a name for a reply.
Event describe(engine::Instant now, const RecordedOutput& output);

/// Adds the name of its device to each event.
void name_devices(const engine::FabricConfig& fabric, std::vector<Event>& events);
void name_devices(const engine::FabricConfig& fabric, Event& event);

/// Returns one line of JSON without its end.
std::string to_json(const Event& event);

}  // namespace rocemu::journal
