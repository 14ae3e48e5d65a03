// The services that the stages of the protocol (establishment, rejection, release, resolution)
// share: the table of connections, messages with their repetition, and events for the layer above
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/cm/connection.h"
#include "emulator/engine/cm/connection_table.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/cm/event_queue.h"
#include "emulator/engine/cm/general_services.h"

namespace rocemu::engine::cm {

/// The device at which a message arrived, and its sender
struct Arrival {
  DeviceIndex device;
  Route back;  // to the sender
  uint64_t transaction_id;
};

class ProtocolContext {
 public:
  ProtocolContext(Environment& environment, GeneralServices& general_services,
                  ConnectionTable& table, EventQueue& events)
      : environment_(environment),
        general_services_(general_services),
        table_(table),
        events_(events) {}

  const Environment& environment() const { return environment_; }
  ConnectionTable& table() { return table_; }
  /// Adds an event for the layer above. Returns the event, or nullptr if the layer above has
  /// destroyed the connection.
  Event* report(const Connection& connection, EventKind kind,
                const std::optional<wire::CmMessage>& message = std::nullopt) {
    return events_.add(connection, kind, message);
  }

  // ---- Messages ----
  /// Sends a message that belongs to no connection.
  void send(const Route& route, const wire::CmMad& mad, const Resend& resend = {});
  /// Sends the message, and keeps it so that it can be repeated.
  void send(Connection& connection, uint64_t transaction_id, const wire::CmMessage& message);
  /// Sends the latest message again.
  void repeat(const Connection& connection, const Resend& resend);
  /// Sends the latest message again, because the message to which it is the answer arrived again.
  void repeat_answer(const Connection& connection) {
    repeat(connection, {.why = Resent::kDuplicate, .begins = true});
  }
  /// Counts a message that is ignored.
  void drop(DeviceIndex device) { environment_.count(device, Counter::kMadsDropped); }

  // ---- Time ----
  /// Repeats the latest message until stop_timer() is called, at most max_retries times. If there
  /// is still no answer after the last repetition, timeouts::give_up() ends the wait.
  void expect_answer(Connection& connection);
  void start_timer(Connection& connection, Duration duration);
  void stop_timer(Connection& connection) { table_.set_deadline(connection, std::nullopt); }

  // ---- Ends ----
  /// Ends a connection that was never established, at least from the peer's point of view. The
  /// connection is kept for a while, so that the last answer can be repeated.
  void close(Connection& connection);
  /// Ends an established connection. It stays in timewait, because its packets may still be in
  /// flight.
  void enter_timewait(Connection& connection);

 private:
  Environment& environment_;
  GeneralServices& general_services_;
  ConnectionTable& table_;
  EventQueue& events_;
};

}  // namespace rocemu::engine::cm
