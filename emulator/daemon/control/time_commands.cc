#include "emulator/daemon/control/time_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/daemon/control/control_request.h"

namespace rocemu::daemon {
namespace {

/// The end of virtual time, after 100 years. 292 years of nanoseconds would fit, but no test needs
/// more than a century.
constexpr int64_t kEndOfTime = 100ll * 365 * 24 * 3600 * 1'000'000'000;
/// The maximum number of events that one request handles. If a QP retries forever (rnr_retry 7), a
/// century has very many events.
constexpr int kMaxSteps = 100'000;

int64_t nanoseconds(engine::Instant instant) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(instant.time_since_epoch()).count();
}

void require_virtual(const Clock& clock) {
  if (clock.is_virtual()) return;
  throw ControlServer::Refusal("this NIC has the real clock; start it with --lockstep");
}

Json clock_json(EngineHost& host, const Clock& clock, bool held) {
  Json json;
  json["clock"] = clock.is_virtual() ? "virtual" : "real";
  json["held"] = held;
  json["now_ns"] = nanoseconds(clock.now());
  const auto next = host.next_deadline();
  json["next_ns"] = next ? Json(nanoseconds(*next)) : Json(nullptr);
  return json;
}

void hold(const Clock& clock, bool& held, const Json& request) {
  const auto wanted = flag_of(request, "held");
  if (!wanted) return;
  require_virtual(clock);
  held = *wanted;
}

/// Advances the time event by event, so that the effects of an event are visible to the events that
/// are due later. Programs respond only after the last event.
void advance(EngineHost& host, SessionTable& sessions, Clock& clock, const Json& request) {
  require_virtual(clock);
  const auto found = request.find("ns");
  const int64_t longest = std::max<int64_t>(kEndOfTime - nanoseconds(clock.now()), 0);
  if (found == request.end() || !found->is_number_unsigned() ||
      found->get<uint64_t>() > static_cast<uint64_t>(longest)) {
    throw ControlServer::Refusal(
        fmt::format("\"ns\" must be a number of nanoseconds up to {}", longest));
  }
  sessions.pump_in_order();  // doorbells that were rung before the request
  const engine::Instant target =
      clock.now() + std::chrono::nanoseconds(static_cast<int64_t>(found->get<uint64_t>()));
  auto next = host.next_deadline();
  for (int step = 0; step < kMaxSteps && next && *next <= target; ++step) {
    clock.advance_to(*next);
    host.tick_if_due(clock.now());
    next = host.next_deadline();
  }
  const bool arrived = !next || *next > target;
  if (arrived) clock.advance_to(target);
  host.delivery().release_outputs();
  sessions.begin_round();
  if (arrived) return;
  throw ControlServer::Refusal(
      fmt::format("after {} steps the time is {} ns, not {}: some work may repeat forever; "
                  "advance by less, or repeat the request",
                  kMaxSteps, nanoseconds(clock.now()), nanoseconds(target)));
}

}  // namespace

ControlServer::Commands time_commands(EngineHost& host, SessionTable& sessions, Clock& clock,
                                      bool& held) {
  return {
      {"clock", taking({"held"},
                       [&](const Json& request) {
                         hold(clock, held, request);
                         return clock_json(host, clock, held);
                       })},
      {"advance", taking({"ns"},
                         [&](const Json& request) {
                           advance(host, sessions, clock, request);
                           return clock_json(host, clock, held);
                         })},
  };
}

}  // namespace rocemu::daemon
