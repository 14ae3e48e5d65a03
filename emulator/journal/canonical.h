// Recordings in a form that is the same for two runs of the same program: objects and clients have
// names in order of creation, PSNs count from their QP's start, and addresses and other values that
// the system or a program chose are omitted.
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
  /// `with_times` includes times in the form, which is only possible in lockstep: elsewhere they
  /// depend on the machine.
  explicit Canonical(bool with_times) : with_times_(with_times) {}

  /// Returns an empty text if nothing of the event is the same in every run.
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

/// The lines of a journal, one by one.
class CanonicalReader {
 public:
  /// Opens the journal. Throws JournalError, as next() does.
  CanonicalReader(const std::string& path, bool with_times);
  std::optional<std::string> next();
  const Header& header() const { return journal_.header(); }
  /// Must be called at the end; see JournalReader.
  void require_whole() const { journal_.require_whole(); }

 private:
  JournalReader journal_;
  Canonical canonical_;
  engine::Instant now_{};
  std::vector<Event> events_;
  std::deque<std::string> lines_;
};

/// The first difference of two recordings: the lines before it, and one line of each, or nothing at
/// its end.
struct Deviation {
  uint64_t line = 0;  // of the canonical form, from 1
  std::deque<std::string> before;
  std::optional<std::string> a, b;
};
/// Returns nothing if the recordings are equal; `lines` is then their number of lines. Throws
/// TruncatedJournal if they are equal up to where one of them is truncated.
std::optional<Deviation> compare_recordings(const std::string& a, const std::string& b,
                                            uint64_t* lines);

}  // namespace rocemu::journal
