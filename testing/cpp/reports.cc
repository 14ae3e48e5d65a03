#include "testing/cpp/reports.h"

#include <algorithm>
#include <cstdio>

#include "testing/cpp/control_socket.h"

namespace rocemu::testing {
namespace {

Place place_of(const Json& json) {
  Place place{json.at("what").get<std::string>(),
              json.at("call").get<std::string>(),
              json.at("time").get<double>(),
              {}};
  for (const Json& frame : json.at("stack"))
    place.stack.push_back({frame.at("function").get<std::string>(),
                           frame.at("file").get<std::string>(), frame.at("line").get<uint32_t>(),
                           frame.at("module").get<std::string>()});
  return place;
}

Report report_of(const Json& json) {
  Report report{json.at("rule").get<std::string>(),
                json.at("severity").get<std::string>(),
                json.at("message").get<std::string>(),
                json.at("process").get<std::string>(),
                {},
                json.at("count").get<uint64_t>()};
  for (const Json& place : json.at("places")) report.places.push_back(place_of(place));
  return report;
}

/// Returns a text that is equal for equal mistakes at the same places.
std::string identity_of(const Report& report) {
  std::string text = report.rule + " " + report.process.substr(0, report.process.rfind('#'));
  for (const Place& place : report.places) {
    text += "\n" + place.what + " " + place.call;
    for (const Frame& frame : place.stack)
      text += " " + frame.module + ":" + frame.function + ":" + frame.file + ":" +
              std::to_string(frame.line);
  }
  return text;
}

}  // namespace

std::vector<Report> read_reports(const std::string& json) {
  try {
    std::vector<Report> reports;
    const Json parsed = Json::parse(json);
    for (const Json& report : parsed.at("reports")) reports.push_back(report_of(report));
    return reports;
  } catch (const Json::exception& error) {
    throw Error("these are not reports: " + std::string(error.what()));
  }
}

ReportCounts counts_of(const std::vector<Report>& reports) {
  ReportCounts counts;
  for (const Report& report : reports) counts[identity_of(report)] += report.count;
  return counts;
}

std::vector<Report> reports_since(const ReportCounts& counts, std::vector<Report> reports) {
  for (Report& report : reports)
    if (const auto before = counts.find(identity_of(report)); before != counts.end())
      report.count -= std::min(report.count, before->second);
  std::erase_if(reports, [](const Report& report) { return report.count == 0; });
  return reports;
}

std::string Report::text() const {
  std::string lines = severity + " [" + rule + "]: " + message + "\n";
  for (const Place& place : places) {
    const Frame frame = place.stack.empty() ? Frame() : place.stack.front();
    char time[48];
    std::snprintf(time, sizeof time, "at %.3f s", place.time);
    lines += "    " + place.what + "  " + frame.function + "  " +
             (frame.line != 0 ? frame.file + ":" + std::to_string(frame.line) : frame.module) +
             "  " + place.call + "  " + time + "\n";
  }
  return lines;
}

std::ostream& operator<<(std::ostream& out, const Report& report) {
  return out << report.text();
}

}  // namespace rocemu::testing
