// Appends records to a journal. Each begins with its length and a checksum, so that a reader knows
// which part of a truncated file it can trust.
#pragma once

#include <string>
#include <vector>

#include "emulator/journal/bytes.h"
#include "emulator/journal/header.h"
#include "emulator/os/background_file.h"

namespace rocemu::journal {

/// The bytes before the body of each record. The checksum is the CRC-32 of the length and the body.
struct RecordFrame {
  uint32_t length;
  uint32_t crc;
};
inline constexpr uint32_t kMaxRecord = 64u << 20;
/// The value that replaces the length after the last record, if the run was recorded to its end.
inline constexpr uint32_t kEndOfJournal = 0xffff'ffff;

uint32_t record_crc(uint32_t length, Bytes body);

class JournalWriter {
 public:
  /// Creates the file and writes the header. take_error() reports a failure.
  JournalWriter(const std::string& path, const Header& header);
  /// Writes the remaining records.
  ~JournalWriter() { flush(); }

  /// Returns the buffer. The bytes that the caller appends to it between begin_record() and
  /// end_record() are a record.
  std::vector<std::byte>& buffer() { return buffer_; }
  void begin_record();
  void end_record();
  /// Appends the mark that the journal is complete. Without it, a reader considers the journal
  /// truncated.
  void finish();
  /// Passes the buffer to the file. Waits for the disk only if too much data is waiting already.
  void flush() { file_.write(buffer_); }
  void sync() { file_.sync(); }

  /// Returns "cannot write FILE: why" once if the file cannot be written; otherwise an empty text.
  std::string take_error();

 private:
  std::string path_;
  BackgroundFile file_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  bool told_ = false;
};

}  // namespace rocemu::journal
