#include "emulator/journal/marks.h"

namespace rocemu::journal {
namespace {

/// The optional parts of the marks. Their bits are in the first byte.
enum MarkParts : uint8_t {
  kMadeUp = 1 << 0,
  kCopy = 1 << 1,
  kLost = 1 << 2,  // without data
  kHeld = 1 << 3,
  kLinkDelay = 1 << 4,
  kResent = 1 << 5,
  kBegins = 1 << 6,  // without data
};

}  // namespace

void append_marks(Appender& to, const engine::FrameMarks& marks) {
  const engine::Resend& resend = marks.resend;
  const auto part = [](bool is_there, MarkParts which) { return is_there ? which : 0; };
  to.put(static_cast<uint8_t>(
      part(marks.made_up_with != 0, kMadeUp) | part(marks.copy != 0, kCopy) |
      part(marks.lost, kLost) | part(marks.held.count() != 0, kHeld) |
      part(marks.link_delay.count() != 0, kLinkDelay) |
      part(resend.why != engine::Resent::kNo, kResent) | part(resend.begins, kBegins)));
  to.put(marks.number);
  if (marks.made_up_with != 0) to.put(marks.made_up_with);
  if (marks.copy != 0) to.put(marks.copy);
  if (marks.held.count() != 0) to.put(marks.held);
  if (marks.link_delay.count() != 0) to.put(marks.link_delay);
  if (resend.why == engine::Resent::kNo) return;
  to.put(resend.why);
  to.put(resend.waited);
}

void take_marks(Taker& from, engine::FrameMarks& marks) {
  const auto parts = from.take<uint8_t>();
  marks.number = from.take<uint64_t>();
  if ((parts & kMadeUp) != 0) marks.made_up_with = from.take<uint64_t>();
  if ((parts & kCopy) != 0) marks.copy = from.take<uint32_t>();
  marks.lost = (parts & kLost) != 0;
  if ((parts & kHeld) != 0) marks.held = from.take<engine::Duration>();
  if ((parts & kLinkDelay) != 0) marks.link_delay = from.take<engine::Duration>();
  marks.resend.begins = (parts & kBegins) != 0;
  if ((parts & kResent) == 0) return;
  marks.resend.why = from.take_enum(engine::Resent::kDuplicate);
  marks.resend.waited = from.take<engine::Duration>();
}

}  // namespace rocemu::journal
