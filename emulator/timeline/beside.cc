#include "emulator/timeline/beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

#include "emulator/timeline/arrange.h"

namespace rocemu::timeline {
namespace {

constexpr const char* kMark = "first difference";

/// Details that are not compared, because their values are random, or because the text or the lane
/// already contains them
const std::set<std::string_view> kIncomparable = {"client",  "address", "lkey",   "rkey",
                                                  "sq_psn",  "rq_psn",  "psn",    "frame",
                                                  "message", "id",      "cookie", "channel"};

/// Removes starting PSNs, which are random. The text also has relative PSNs, which are compared.
std::string without_chance(const std::string& text) {
  static const std::regex absolute("\\([0-9]+\\)");
  return text.find('(') == std::string::npos ? text : std::regex_replace(text, absolute, "()");
}

bool are_same(const Happening& a, const Happening& b) {
  return a.kind == b.kind && a.lane == b.lane && a.to == b.to && a.lost == b.lost &&
         without_chance(a.text) == without_chance(b.text);
}

const Happening* happening_at(const Timeline& timeline, size_t at) {
  return at < timeline.happenings.size() ? &timeline.happenings[at] : nullptr;
}

std::string fate_of(const Happening& one) {
  if (!one.lost) return "yes";
  return one.reason.empty() ? "no" : "no, " + one.reason;
}

std::string lane_title(const Timeline& timeline, uint32_t lane) {
  if (lane == kNoLane) return "nowhere";
  Lane place = timeline.lanes[lane];
  place.pid = 0;
  return title(place);
}

/// Returns the fields in which two happenings differ. One of the two happenings may be missing.
std::vector<Difference> differences_between(const Timeline& first, const Timeline& second,
                                            const Happening* a, const Happening* b) {
  std::vector<Difference> found;
  const auto compare = [&](const std::string& field, const std::string& one,
                           const std::string& other) {
    if (one != other) found.push_back({field, one, other});
  };
  if (a == nullptr || b == nullptr) {
    compare("what happens", a != nullptr ? a->text : "nothing more",
            b != nullptr ? b->text : "nothing more");
    return found;
  }
  compare("kind", kind_name(a->kind), kind_name(b->kind));
  if (without_chance(a->text) != without_chance(b->text)) compare("what happens", a->text, b->text);
  compare(is_arrow(*a) ? "sender" : "where", lane_title(first, a->lane),
          lane_title(second, b->lane));
  compare("receiver", lane_title(first, a->to), lane_title(second, b->to));
  compare("arrives", fate_of(*a), fate_of(*b));
  if (a->kind != b->kind) return found;
  if (a->psn && b->psn) compare("psn", fmt::format("{:+}", *a->psn), fmt::format("{:+}", *b->psn));
  for (const auto& [name, value] : a->details) {
    const auto other = std::ranges::find(b->details, name, &Details::value_type::first);
    if (other != b->details.end() && !kIncomparable.contains(name))
      compare(name, value, other->second);
  }
  return found;
}

std::string in_words(const std::vector<Difference>& differences) {
  std::string text;
  for (const auto& [field, first, second] : differences)
    text +=
        fmt::format("{}{}: 1st run {}, 2nd run {}", text.empty() ? "" : "; ", field, first, second);
  return text;
}

}  // namespace

bool is_first_difference(const Happening& one) {
  return one.topic == kMark;
}

Timeline beside(Timeline first, Timeline second) {
  const auto& a = first.happenings;
  const auto& b = second.happenings;
  const size_t common = std::min(a.size(), b.size());
  size_t differ = 0;
  while (differ < common && are_same(a[differ], b[differ])) ++differ;
  const bool is_same = differ == a.size() && differ == b.size();

  Timeline both;
  both.source = first.source + " and " + second.source;
  both.clock = first.clock;
  both.wall_start_ns = first.wall_start_ns;
  both.lanes = first.lanes;
  const auto offset = static_cast<uint32_t>(first.lanes.size());
  std::ranges::copy(second.lanes, std::back_inserter(both.lanes));
  for (uint32_t i = 0; i < both.lanes.size(); ++i) {
    Lane& lane = both.lanes[i];
    lane.run = i < offset ? 1 : 2;
    lane.process = (i < offset ? "1st run " : "2nd run ") + lane.process;
  }
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i == differ) {
      both.differences =
          differences_between(first, second, happening_at(first, i), happening_at(second, i));
      Happening& mark = both.happenings.emplace_back();
      mark.at = (i < a.size() ? a[i] : b[i]).at;
      mark.kind = Kind::kFault;
      mark.tone = Tone::kError;
      mark.lane = i < a.size() ? a[i].lane : b[i].lane + offset;
      mark.text = mark.topic = kMark;
      mark.reason = in_words(both.differences);
    }
    if (i < a.size()) both.happenings.push_back(a[i]);
    if (i >= b.size()) continue;
    Happening& moved = both.happenings.emplace_back(b[i]);
    moved.lane += offset;
    if (moved.to != kNoLane) moved.to += offset;
  }
  for (const Timeline* one : {&first, &second}) {
    for (const std::string& note : one->notes) both.notes.push_back(one->source + ": " + note);
  }
  if (is_same) both.notes.push_back("both runs are equal");
  return both;
}

}  // namespace rocemu::timeline
