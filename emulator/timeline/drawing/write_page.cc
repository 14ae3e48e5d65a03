#include "emulator/timeline/drawing/write_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "emulator/timeline/arrange.h"
#include "emulator/timeline/page/page_files.h"

namespace rocemu::timeline {
namespace {

using Json = nlohmann::json;

std::string base64(const std::vector<uint8_t>& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) { return at + i < bytes.size() ? bytes[at + i] : 0u; };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (unsigned i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string lane_name(const Lane& lane) {
  std::string text = lane.device;
  if (lane.qpn != 0) text += fmt::format(" QP {:#x}", lane.qpn);
  return lane.type.empty() ? text : text + " " + lane.type;
}

Json to_json(const Happening& one, const RowSpan& span) {
  return {{"at", one.at.time_since_epoch().count()},
          {"row", span.row},
          {"end", span.end},
          {"kind", kind_name(one.kind)},
          {"tone", static_cast<int>(one.tone)},
          {"lane", one.lane},
          {"to", one.to == kNoLane ? -1 : static_cast<int64_t>(one.to)},
          {"request", one.is_request},
          {"lost", one.lost},
          {"flight", one.flight.count()},
          {"text", one.text},
          {"reason", one.reason},
          {"topic", one.topic},
          {"state", one.state},
          {"psn", one.psn ? Json(*one.psn) : Json()},
          {"details", one.details},
          {"bytes", base64(one.bytes)}};
}

/// Returns the JSON with escapes, so that no text in it can end the script element that contains
/// it.
std::string in_script(std::string json) {
  for (size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6)
    json.replace(at, 1, "\\u003c");
  return json;
}

std::string dump(const Json& json) {
  return in_script(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json explained(const Timeline& timeline, const Explain& explain) {
  Json topics = Json::object();
  for (const Happening& one : timeline.happenings) {
    if (one.topic.empty() || topics.contains(one.topic)) continue;
    topics[one.topic] = explain(one.topic);
  }
  return topics;
}

void write_data(const Timeline& timeline, const Explain& explain, std::ostream& out) {
  Json lanes = Json::array();
  for (const Lane& lane : timeline.lanes) {
    const std::string pid = lane.pid != 0 ? fmt::format("[{}]", lane.pid) : "";
    lanes.push_back({{"process", lane.process + pid},
                     {"device", lane.device},
                     {"qp", lane_name(lane)},
                     {"run", lane.run}});
  }
  const Arrangement arrangement = arrange(timeline);
  Json folds = Json::array();
  for (const Fold& fold : arrangement.folds) folds.push_back({fold.first, fold.last});
  Json differences = Json::array();
  for (const auto& [field, first, second] : timeline.differences)
    differences.push_back({field, first, second});
  out << R"({"source":)" << dump(timeline.source) << R"(,"notes":)" << dump(timeline.notes)
      << R"(,"lanes":)" << dump(lanes) << R"(,"topics":)" << dump(explained(timeline, explain))
      << R"(,"rows":)" << arrangement.rows << R"(,"folds":)" << dump(folds) << R"(,"differences":)"
      << dump(differences) << R"(,"happenings":[)";
  const char* comma = "";
  for (size_t i = 0; i < timeline.happenings.size(); ++i) {
    out << comma << dump(to_json(timeline.happenings[i], arrangement.spans[i]));
    comma = ",\n";
  }
  out << "]}";
}

}  // namespace

void write_json(const Timeline& timeline, const Explain& explain, std::ostream& out) {
  write_data(timeline, explain, out);
  out << "\n";
}

void write_page(const Timeline& timeline, const Explain& explain, std::ostream& out) {
  std::string_view page = kPageHtml;
  while (!page.empty()) {
    const size_t at = page.find('@');
    out << page.substr(0, at);
    if (at == std::string_view::npos) return;
    const size_t end = page.find('@', at + 1);
    const std::string_view name = page.substr(at + 1, end - at - 1);
    if (name == "STYLE") out << kPageStyle;
    if (name == "SCRIPT") out << kPageLayout << kPageScript;
    if (name == "DATA") write_data(timeline, explain, out);
    page.remove_prefix(end + 1);
  }
}

}  // namespace rocemu::timeline
