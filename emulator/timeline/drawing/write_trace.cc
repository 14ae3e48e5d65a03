#include "emulator/timeline/drawing/write_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rocemu::timeline {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The first PID for lanes without a process, as in a capture. Each of them becomes a separate
/// process, with a PID that no real process has.
constexpr uint32_t kFirstMadeUpPid = 1'000'000'000;

/// Returns a duration in microseconds, the unit of trace events.
double microseconds(engine::Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, std::ostream& out) : timeline_(timeline), out_(out) {}

  void write() {
    out_ << R"({"displayTimeUnit":"ns","otherData":)"
         << dump(OrderedJson{{"source", timeline_.source}, {"notes", timeline_.notes}})
         << R"(,"traceEvents":[)";
    write_names();
    // A frame is drawn as a slice where it leaves, a slice where it arrives, and a flow between the
    // two.
    for (size_t i = 0; i < timeline_.happenings.size(); ++i) {
      const Happening& one = timeline_.happenings[i];
      const bool travels = one.to != kNoLane && !one.lost;
      OrderedJson slice = slice_of(one, one.lane, one.at.time_since_epoch());
      if (travels) {
        slice["bind_id"] = fmt::format("{:#x}", i + 1);
        slice["flow_out"] = true;
      }
      write(slice);
      if (!travels) continue;
      OrderedJson arrival = slice_of(one, one.to, one.at.time_since_epoch() + one.flight);
      arrival["bind_id"] = fmt::format("{:#x}", i + 1);
      arrival["flow_in"] = true;
      write(arrival);
    }
    out_ << "\n]}\n";
  }

 private:
  static std::string dump(const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  void write(const OrderedJson& event) {
    out_ << comma_ << "\n" << dump(event);
    comma_ = ",";
  }

  uint32_t pid(uint32_t lane) const {
    return timeline_.lanes[lane].pid != 0 ? timeline_.lanes[lane].pid : kFirstMadeUpPid + lane;
  }

  void write_names() {
    for (uint32_t i = 0; i < timeline_.lanes.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      write({{"ph", "M"},
             {"name", "process_name"},
             {"pid", pid(i)},
             {"args", {{"name", lane.process.empty() ? title(lane) : lane.process}}}});
      std::string name = lane.device;
      if (lane.qpn != 0) name += fmt::format(" QP {:#x}", lane.qpn);
      write({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", pid(i)},
             {"tid", i + 1},
             {"args", {{"name", name}}}});
    }
  }

  OrderedJson slice_of(const Happening& one, uint32_t lane, engine::Duration at) const {
    OrderedJson args = OrderedJson::object();
    if (!one.reason.empty()) args["reason"] = one.reason;
    if (one.psn) args["relative_psn"] = *one.psn;
    if (!one.state.empty()) args["state"] = one.state;
    if (one.lost) args["lost"] = true;
    for (const auto& [name, value] : one.details) args[name] = value;
    std::string category = kind_name(one.kind);
    if (one.tone == Tone::kError) category += ",error";
    if (one.tone == Tone::kAgain) category += ",retransmission";
    return {{"ph", "X"}, {"name", one.text}, {"cat", category}, {"ts", microseconds(at)},
            {"dur", 0},  {"pid", pid(lane)}, {"tid", lane + 1}, {"args", args}};
  }

  const Timeline& timeline_;
  std::ostream& out_;
  const char* comma_ = "";
};

}  // namespace

void write_trace(const Timeline& timeline, std::ostream& out) {
  TraceWriter(timeline, out).write();
}

}  // namespace rocemu::timeline
