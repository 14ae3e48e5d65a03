#include "emulator/timeline/reading/frame_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rocemu::timeline {
namespace {

using engine::FrameChange;
using engine::FrameFault;
using engine::FrameMarks;
using engine::Resent;

/// Returns the rule's effects that the drawn frame shows. A dropped frame was not delayed,
/// duplicated or reordered, and a copy was not duplicated itself.
std::vector<std::string> changes_in(const FrameFault& fault, const FrameMarks& marks) {
  std::vector<std::string> changes;
  const auto add = [&](FrameChange change, std::string text) {
    if (engine::has(fault.changes, change)) changes.push_back(std::move(text));
  };
  add(FrameChange::kRewritten, "rewritten");
  add(FrameChange::kCorrupted, "corrupted");
  add(FrameChange::kDropped, "dropped");
  add(FrameChange::kRejected, "rejected on behalf of the peer");
  if (!marks.lost) {
    add(FrameChange::kDelayed, "delayed by " + duration_text(fault.delay));
    if (marks.copy == 0) add(FrameChange::kDuplicated, "duplicated");
    add(FrameChange::kReordered, "reordered");
  }
  return changes;
}

std::string fault_text(const FiredRule& rule, const FrameMarks& marks) {
  const std::vector<std::string> changes = changes_in(rule.fault, marks);
  if (changes.empty()) return "rule '" + rule.rule + "' acts here";
  return fmt::format("{} by rule '{}'", fmt::join(changes, " and "), rule.rule);
}

std::string resend_text(const engine::Resend& resend, bool asks) {
  if (!resend.begins) return "retransmission";
  switch (resend.why) {
    case Resent::kNo:
      break;
    case Resent::kAckTimeout:
      return fmt::format("retransmission: no {} within {}", asks ? "response" : "ACK",
                         duration_text(resend.waited));
    case Resent::kSequenceNak:
      return "retransmission after NAK PSN sequence error";
    case Resent::kRnrNak:
      return "retransmission after RNR NAK, timer " + duration_text(resend.waited);
    case Resent::kImpliedNak:
      return "retransmission after an implied NAK: a later response arrived, but this "
             "request's did not";
    case Resent::kNoMemory:
      return "retransmission: there was no memory for the response";
    case Resent::kNoReply:
      return "retransmission: no answer within " + duration_text(resend.waited);
    case Resent::kDuplicate:
      return "answers a duplicate";
  }
  return "";
}

}  // namespace

const std::vector<FiredRule>& FrameFacts::fired_on(uint64_t number) const {
  static const std::vector<FiredRule> kNone;
  const auto found = fired_.find(number);
  return found == fired_.end() ? kNone : found->second;
}

std::optional<uint32_t> FrameFacts::lane_of_rule(uint64_t number) const {
  const auto& fired = fired_on(number);
  return fired.empty() ? std::nullopt : std::optional(fired[0].lane());
}

void FrameFacts::fired(FiredRule rule) {
  // A datagram to a multicast group is drawn only once, but rules act on the copy for each
  // receiver. So a rule can act on a frame that was already drawn.
  const auto drawn = drawn_.find(rule.fault.number);
  if (drawn != drawn_.end()) {
    Happening& frame = timeline_.happenings[drawn->second];
    frame.tone = Tone::kFault;
    frame.topic = "fault";
    frame.reason += (frame.reason.empty() ? "" : "; ") +
                    std::string("on the way to one receiver ") + fault_text(rule, {});
  }
  fired_[rule.fault.number].push_back(std::move(rule));
}

void FrameFacts::add_undrawn() {
  for (const auto& [number, rules] : fired_) {
    if (drawn_.contains(number)) continue;
    for (const FiredRule& rule : rules) {
      const uint32_t lane = rule.lane();
      auto& all = timeline_.happenings;
      const auto behind = std::ranges::upper_bound(all, rule.at, {}, &Happening::at);
      Happening& one = *all.insert(behind, Happening());
      one.at = rule.at;
      one.kind = Kind::kFault;
      one.tone = Tone::kFault;
      one.lane = lane;
      one.text = "rule '" + rule.rule + "'";
      one.reason =
          "acted on " + rule.subject + ", which was not sent on before the recording ended";
    }
  }
}

size_t FrameFacts::overtakers(const FrameMarks& marks, const Happening& frame) {
  std::vector<uint64_t>& numbers = numbers_[{frame.lane, frame.to}];
  const auto behind = std::ranges::upper_bound(numbers, marks.number);
  const auto count = static_cast<size_t>(numbers.end() - behind);
  if (marks.copy == 0 && marks.made_up_with == 0) numbers.insert(behind, marks.number);
  return marks.copy == 0 ? count : 0;
}

std::vector<std::string> FrameFacts::texts_of(const FrameMarks& marks, bool asks) const {
  std::vector<std::string> texts;
  for (const FiredRule& one : fired_on(marks.made_up_with)) {
    const bool made_it_up = engine::has(one.fault.changes, FrameChange::kInjected) ||
                            engine::has(one.fault.changes, FrameChange::kRejected);
    if (made_it_up) texts.push_back("forged by rule '" + one.rule + "': no device sent it");
  }
  const auto& fired = fired_on(marks.number);
  for (const FiredRule& one : fired) {
    if (marks.copy != 0 && engine::has(one.fault.changes, FrameChange::kDuplicated))
      texts.push_back("copy made by rule '" + one.rule + "'");
  }
  for (const FiredRule& one : fired) {
    const bool only_copies = one.fault.changes == static_cast<uint32_t>(FrameChange::kDuplicated);
    if (marks.copy == 0 || !only_copies) texts.push_back(fault_text(one, marks));
  }
  if (marks.link_delay.count() != 0)
    texts.push_back("delayed by " + duration_text(marks.link_delay) + " on the link");
  if (marks.resend.why != Resent::kNo) texts.push_back(resend_text(marks.resend, asks));
  return texts;
}

void FrameFacts::drawn(const FrameMarks& marks, size_t happening, bool asks) {
  Happening& frame = timeline_.happenings[happening];
  drawn_.try_emplace(marks.number, happening);
  frame.lost = marks.lost;
  frame.held = marks.held;
  std::vector<std::string> texts = texts_of(marks, asks);
  if (const size_t count = overtakers(marks, frame); count != 0)
    texts.push_back(fmt::format("overtaken by {} frame{}", count, count == 1 ? "" : "s"));
  if (!frame.reason.empty()) texts.push_back(frame.reason);
  frame.reason = fmt::format("{}", fmt::join(texts, "; "));

  const bool by_rule =
      marks.lost || marks.copy != 0 || marks.made_up_with != 0 || !fired_on(marks.number).empty();
  if (by_rule) {
    if (frame.topic.empty()) frame.topic = "fault";
    frame.tone = Tone::kFault;
  } else if (marks.resend.why != Resent::kNo && frame.tone == Tone::kPlain) {
    frame.tone = Tone::kAgain;
    if (frame.topic.empty()) frame.topic = "retransmission";
  }
}

}  // namespace rocemu::timeline
