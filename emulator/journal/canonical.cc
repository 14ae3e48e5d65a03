#include "emulator/journal/canonical.h"

#include <fmt/format.h>

#include "emulator/journal/recording.h"

namespace rocemu::journal {
namespace {

constexpr size_t kContext = 10;
constexpr uint64_t kPsnMask = 0xff'ffff;

std::string_view kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kQp:
      return "qp";
    case FieldKind::kCq:
      return "cq";
    case FieldKind::kPd:
      return "pd";
    case FieldKind::kMr:
      return "mr";
    case FieldKind::kSrq:
      return "srq";
    case FieldKind::kAh:
      return "ah";
    case FieldKind::kXrcd:
      return "xrcd";
    case FieldKind::kDm:
      return "dm";
    case FieldKind::kMrKey:
      return "key";
    case FieldKind::kClient:
      return "client";
    case FieldKind::kNumber:
    case FieldKind::kText:
    case FieldKind::kDetail:
    case FieldKind::kAddress:
    case FieldKind::kName:
    case FieldKind::kSendPsn:
    case FieldKind::kRecvPsn:
    case FieldKind::kDevice:
      break;
  }
  return "";
}

/// Returns whether the number is the same in every run. The smallest numbers have a special
/// meaning: 0 for no CQ, 1 for the QP of the connection manager.
bool is_fixed(const Field& field) {
  return field.number == 0 || (field.kind == FieldKind::kQp && field.number == 1);
}

bool destroys(const Event& event) {
  const Field* verb = event.find("verb");
  if (verb == nullptr || event.find("error") != nullptr) return false;
  for (const std::string_view begin : {"destroy_", "dealloc_", "dereg_", "free_", "close_"}) {
    if (verb->text.starts_with(begin)) return true;
  }
  return false;
}

}  // namespace

std::string Canonical::line(const Event& event) {
  if (event.what == "client") {
    const uint64_t client = event.find("client")->number;
    names_.erase({FieldKind::kClient, client});
    return "client " + name({FieldKind::kClient, client}, event.find("comm")->text);
  }
  if (event.what == "attach") return "";   // its name comes next
  if (event.what == "process") return "";  // the name of an object that was reported before
  std::string text = with_times_ ? fmt::format("{} ", event.at.time_since_epoch().count()) : "";
  text += event.what;
  for (const Field& field : event.fields) {
    const std::string one = value(event, field);
    if (!one.empty()) text += fmt::format(" {}={}", field.key, one);
  }
  if (destroys(event)) {
    if (const Field* object = event.find("object")) names_.erase({object->kind, object->number});
  }
  return text;
}

std::string Canonical::value(const Event& event, const Field& field) {
  switch (field.kind) {
    case FieldKind::kNumber:
      return std::to_string(field.number);
    case FieldKind::kText:
    case FieldKind::kDevice:
      return field.text;
    case FieldKind::kDetail:
    case FieldKind::kAddress:
    case FieldKind::kName:
      return "";
    case FieldKind::kSendPsn:
    case FieldKind::kRecvPsn:
      return relative_psn(event, field);
    case FieldKind::kClient:
    case FieldKind::kQp:
    case FieldKind::kCq:
    case FieldKind::kPd:
    case FieldKind::kMr:
    case FieldKind::kSrq:
    case FieldKind::kAh:
    case FieldKind::kXrcd:
    case FieldKind::kDm:
    case FieldKind::kMrKey:
      if (is_fixed(field)) return std::to_string(field.number);
      return name({field.kind, field.number}, kind_name(field.kind));
  }
  return "";
}

const std::string& Canonical::name(const Object& object, std::string_view kind) {
  const auto [found, is_new] = names_.try_emplace(object);
  if (is_new) {
    found->second = fmt::format("{}#{}", kind, ++counts_[std::string(kind)]);
  }
  return found->second;
}

/// Returns the PSN relative to the value that ibv_modify_qp(3) set, or, without such a value, to
/// the first PSN of the journal.
std::string Canonical::relative_psn(const Event& event, const Field& field) {
  const std::pair side{field.kind, field.of};
  if (event.what == "verb") starts_[side] = field.number;
  const uint64_t start = starts_.try_emplace(side, field.number).first->second;
  return std::to_string((field.number - start) & kPsnMask);
}

CanonicalReader::CanonicalReader(const std::string& path, bool with_times)
    : journal_(path), canonical_(with_times) {}

std::optional<std::string> CanonicalReader::next() {
  Step step;
  while (lines_.empty()) {
    const std::optional<Bytes> body = journal_.next();
    if (!body) return std::nullopt;
    events_.clear();
    ClientName client;
    if (parse(*body, client)) {
      describe(now_, client, events_);
    } else if (parse(*body, step)) {
      now_ = step.now;
      describe(step, Frames::kAll, events_);
    } else {
      journal_.fail("an invalid record");
    }
    name_devices(header().fabric, events_);
    for (const Event& event : events_) {
      std::string line = canonical_.line(event);
      if (!line.empty()) lines_.push_back(std::move(line));
    }
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

std::optional<Deviation> compare_recordings(const std::string& a, const std::string& b,
                                            uint64_t* lines) {
  const auto is_lockstep = [](const std::string& dir) {
    return JournalReader(dir + kJournalFile).header().clock == "lockstep";
  };
  const bool with_times = is_lockstep(a) && is_lockstep(b);
  CanonicalReader first(a + kJournalFile, with_times);
  CanonicalReader second(b + kJournalFile, with_times);
  Deviation deviation;
  while (true) {
    std::optional<std::string> one = first.next();
    std::optional<std::string> other = second.next();
    if (!one) first.require_whole();
    if (!other) second.require_whole();
    if (one != other) {
      ++deviation.line;
      deviation.a = std::move(one);
      deviation.b = std::move(other);
      return deviation;
    }
    if (!one) break;
    ++deviation.line;
    deviation.before.push_back(std::move(*one));
    if (deviation.before.size() > kContext) deviation.before.pop_front();
  }
  *lines = deviation.line;
  return std::nullopt;
}

}  // namespace rocemu::journal
