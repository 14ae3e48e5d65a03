// Appends records to a journal, each with its length and a checksum in front, so that a reader
// knows how much of a torn file it can trust.
#pragma once

#include <string>
#include <vector>

#include "emulator/journal/bytes.h"
#include "emulator/journal/header.h"
#include "emulator/os/background_file.h"

namespace rocemu::journal {

/// Precedes each record's body. The checksum is CRC-32 over the length and the body.
struct RecordFrame {
  uint32_t length;
  uint32_t crc;
};
inline constexpr uint32_t kMaxRecord = 64u << 20;
/// A value instead of a length. It means that no record follows, since the run was recorded to its
/// end.
inline constexpr uint32_t kEndOfJournal = 0xffff'ffff;

uint32_t record_crc(uint32_t length, Bytes body);

class JournalWriter {
 public:
  /// Creates the file. error() shows whether this succeeded.
  JournalWriter(const std::string& path, const Header& header);
  /// Writes the rest.
  ~JournalWriter() { flush(); }

  /// Returns the buffer. A record consists of the bytes that are appended to it between these two
  /// calls.
  std::vector<std::byte>& buffer() { return buffer_; }
  void begin_record();
  void end_record();
  /// Writes the mark that nothing is missing. Without it a reader considers the journal truncated.
  void finish();
  /// Writes to the file, as far as possible without waiting.
  void flush() { file_.write(buffer_); }
  void sync() { file_.sync(); }

  /// Returns an empty text, or "cannot write FILE: why", once.
  std::string take_error();

 private:
  std::string path_;
  BackgroundFile file_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  bool told_ = false;
};

}  // namespace rocemu::journal
