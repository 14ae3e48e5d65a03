// Reads a journal record by record. The file is untrusted: whatever its bytes are, the result is
// records, an end, or an error that names the position.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/journal/bytes.h"
#include "emulator/journal/header.h"

namespace rocemu::journal {

/// Any error in a journal. what() is "FILE: byte 1234: what is wrong".
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The error for a truncated journal: "FILE: cut off at byte 1234 ...". The part before that byte
/// is valid.
class TruncatedJournal : public JournalError {
 public:
  using JournalError::JournalError;
};

class JournalReader {
 public:
  /// Opens the journal and reads its header. Throws JournalError if the file cannot be opened, is
  /// not a journal or has another format, and TruncatedJournal if it ends within the header.
  explicit JournalReader(const std::string& path);
  /// Reads a journal that is in memory. `name` is the file name in errors.
  JournalReader(std::string name, Bytes contents);

  const Header& header() const { return header_; }

  /// Returns the body of the next record, which is valid until the next call; nothing at the end.
  /// If the writer was killed or ran out of space, the journal is truncated within a record or
  /// after one: next() returns nothing there, and torn() is true. Throws JournalError for a damaged
  /// record.
  std::optional<Bytes> next();
  bool torn() const { return torn_; }
  /// Throws TruncatedJournal if the journal is truncated. Must be called after the last record.
  void require_whole() const;

  /// Returns the file offset of the record that next() returned.
  uint64_t offset() const { return record_offset_; }

  /// Throws JournalError for the body of the record that next() returned.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void open();
  bool read(void* to, size_t size);
  [[noreturn]] void fail_truncated(uint64_t offset, const char* where) const;

  std::string name_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  Header header_;
  std::vector<std::byte> body_;
  uint64_t offset_ = 0;
  uint64_t record_offset_ = 0;
  bool torn_ = false;
  bool ended_ = false;
};

}  // namespace rocemu::journal
