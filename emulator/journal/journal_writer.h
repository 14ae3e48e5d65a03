// Appends records to a journal: each with its length and a checksum before it, so that a reader
// knows how far a torn file can be trusted.
#pragma once

#include <string>
#include <vector>

#include "emulator/journal/bytes.h"
#include "emulator/journal/header.h"
#include "emulator/os/background_file.h"

namespace rocemu::journal {

/// Before each record's body. The checksum is CRC-32 over the length and the body.
struct RecordFrame {
  uint32_t length;
  uint32_t crc;
};
inline constexpr uint32_t kMaxRecord = 64u << 20;
/// In the place of a length: no record follows, since the run was recorded to its end.
inline constexpr uint32_t kEndOfJournal = 0xffff'ffff;

uint32_t record_crc(uint32_t length, Bytes body);

class JournalWriter {
 public:
  /// error() says whether that worked.
  JournalWriter(const std::string& path, const Header& header);
  /// Writes what is left.
  ~JournalWriter() { flush(); }

  /// A record is what is appended to buffer() between these two.
  std::vector<std::byte>& buffer() { return buffer_; }
  void begin_record();
  void end_record();
  /// Says in the file that nothing is missing. Without it a reader takes the journal for one that
  /// was cut off.
  void finish();
  /// To the file, as far as that goes without waiting.
  void flush() { file_.write(buffer_); }
  void sync() { file_.sync(); }

  /// Empty, or "cannot write FILE: why", once.
  std::string take_error();

 private:
  std::string path_;
  BackgroundFile file_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  bool told_ = false;
};

}  // namespace rocemu::journal
