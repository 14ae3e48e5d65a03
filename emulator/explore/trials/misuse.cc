#include "emulator/explore/trials/misuse.h"

#include <fmt/format.h>

#include "emulator/explore/files.h"

namespace rocemu::explore {
namespace {

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Returns a description of a stack frame: its function and line, such as "send() hello.c:44", or
/// its library if the line is unknown.
std::string in_words(const Json& frame, const char* between) {
  const std::string function = frame.at("function");
  const uint32_t line = frame.at("line");
  const std::string place = line != 0 ? fmt::format("{}:{}", last_part(frame.at("file")), line)
                                      : last_part(frame.at("module"));
  return function.empty() ? place : fmt::format("{}(){}{}", function, between, place);
}

std::string in_words(const Json& place) {
  std::string text = fmt::format("{} by {}", place.at("what").get<std::string>(),
                                 place.at("call").get<std::string>());
  const char* before = ": ";
  for (const Json& frame : place.at("stack")) {
    text += before + in_words(frame, " ");
    before = " < ";
  }
  return text;
}

/// Returns the name that scenarios use for the call. Work requests that are built with
/// ibv_wr_start() and the functions after it are posted when the builder ends, so all of these
/// functions have one name.
std::string verb_of(const std::string& call) {
  if (call.starts_with("ibv_wr_")) return "post_send";
  return call.starts_with("ibv_") ? call.substr(4) : call;
}

Misuse read_misuse(const Json& report) {
  Misuse misuse;
  report.at("rule").get_to(misuse.rule);
  misuse.is_error = report.at("severity") == "error";
  report.at("message").get_to(misuse.message);
  const std::string process = report.at("process");
  misuse.program = process.substr(0, process.rfind('#'));
  for (const Json& place : report.at("places")) misuse.places.push_back(in_words(place));
  if (misuse.places.empty()) return misuse;
  const Json& last = report.at("places").back();
  if (!last.at("stack").empty()) misuse.where = in_words(last.at("stack").front(), " at ");
  const std::string what = last.at("what");
  if (what == "refused" || what == "failed") misuse.refused = verb_of(last.at("call"));
  return misuse;
}

}  // namespace

std::vector<Misuse> read_misuses(const std::filesystem::path& file) {
  std::vector<Misuse> misuses;
  if (!std::filesystem::exists(file)) return misuses;
  const Json json = Json::parse(contents_of(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return misuses;
  for (const Json& report : json.at("reports")) misuses.push_back(read_misuse(report));
  return misuses;
}

Json Misuse::to_json() const {
  return Json{{"rule", rule},       {"is_error", is_error}, {"message", message},
              {"program", program}, {"places", places},     {"where", where},
              {"refused", refused}};
}

Misuse Misuse::from_json(const Json& json) {
  Misuse misuse;
  json.at("rule").get_to(misuse.rule);
  json.at("is_error").get_to(misuse.is_error);
  json.at("message").get_to(misuse.message);
  json.at("program").get_to(misuse.program);
  json.at("places").get_to(misuse.places);
  json.at("where").get_to(misuse.where);
  json.at("refused").get_to(misuse.refused);
  return misuse;
}

}  // namespace rocemu::explore
