// Converts recordings to a form that is the same for two runs of the same program. Objects and
// clients have names in order of creation, and PSNs are relative to their QP's first one. Addresses
// and other values that the system or a program chose are omitted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/journal/event.h"
#include "emulator/journal/journal_reader.h"

namespace rocemu::journal {

class Canonical {
 public:
  /// If `with_times` is true, lines contain the time. This is useful only in lockstep, since times
  /// depend on the machine otherwise.
  explicit Canonical(bool with_times) : with_times_(with_times) {}

  /// Returns the event as a line of text; an empty text if no part of the event is the same in
  /// every run.
  std::string line(const Event& event);

 private:
  using Object = std::pair<FieldKind, uint64_t>;

  std::string value(const Event& event, const Field& field);
  const std::string& name(const Object& object, std::string_view kind);
  std::string relative_psn(const Event& event, const Field& field);

  bool with_times_;
  std::map<Object, std::string> names_;
  std::map<std::string, uint32_t, std::less<>> counts_;        // for each kind of name
  std::map<std::pair<FieldKind, uint32_t>, uint64_t> starts_;  // PSNs, by side and QP
};

/// Reads a journal as lines in canonical form.
class CanonicalReader {
 public:
  /// Opens the journal. The constructor and next() throw JournalError.
  CanonicalReader(const std::string& path, bool with_times);
  std::optional<std::string> next();
  const Header& header() const { return journal_.header(); }
  /// Throws TruncatedJournal if the journal is truncated. Must be called at the end.
  void require_whole() const { journal_.require_whole(); }

 private:
  JournalReader journal_;
  Canonical canonical_;
  engine::Instant now_{};
  std::vector<Event> events_;
  std::deque<std::string> lines_;
};

/// The first difference between two recordings a and b: the differing line of each, or nothing for
/// a recording that ends there, and the lines before the difference.
struct Deviation {
  uint64_t line = 0;  // of the canonical form, from 1
  std::deque<std::string> before;
  std::optional<std::string> a, b;
};
/// Returns the first difference. Returns nothing if the recordings are equal, and sets `lines` to
/// their number of lines. Throws TruncatedJournal if one of them is truncated and they are equal up
/// to that point.
std::optional<Deviation> compare_recordings(const std::string& a, const std::string& b,
                                            uint64_t* lines);

}  // namespace rocemu::journal
