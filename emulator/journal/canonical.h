// Recordings in a form that two runs of the same program have in common: objects and clients have
// names in order of their creation, PSNs count from where their QP began, addresses and what else
// the system or a program chose is left out.
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
  /// Times are part of it if they are the program's own and not the machine's: in lockstep.
  explicit Canonical(bool with_times) : with_times_(with_times) {}

  /// Empty if nothing of the event is the same in every run.
  std::string line(const Event& event);

 private:
  using Object = std::pair<FieldKind, uint64_t>;

  std::string value(const Event& event, const Field& field);
  const std::string& name(const Object& object, std::string_view kind);
  std::string relative_psn(const Event& event, const Field& field);

  bool with_times_;
  std::map<Object, std::string> names_;
  std::map<std::string, uint32_t, std::less<>> counts_;        // of each kind of name
  std::map<std::pair<FieldKind, uint32_t>, uint64_t> starts_;  // PSNs, by side and QP
};

/// The lines of a journal, one by one.
class CanonicalReader {
 public:
  /// Throws JournalError, as next() does.
  CanonicalReader(const std::string& path, bool with_times);
  std::optional<std::string> next();
  const Header& header() const { return journal_.header(); }
  /// At the end; see JournalReader.
  void require_whole() const { journal_.require_whole(); }

 private:
  JournalReader journal_;
  Canonical canonical_;
  engine::Instant now_{};
  std::vector<Event> events_;
  std::deque<std::string> lines_;
};

/// Where two recordings part: what both have before, and one line of each, or nothing at its end.
struct Deviation {
  uint64_t line = 0;  // of the canonical form, from 1
  std::deque<std::string> before;
  std::optional<std::string> a, b;
};
/// Nothing if the recordings are the same; `lines` is then how many they have. Throws
/// TruncatedJournal if they are the same up to where one of them is cut off.
std::optional<Deviation> compare_recordings(const std::string& a, const std::string& b,
                                            uint64_t* lines);

}  // namespace rocemu::journal
