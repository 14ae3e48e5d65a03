// Reads a journal record by record. The file is untrusted: for any bytes the result is records, an
// end, or an error that names the place.
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

/// "FILE: byte 1234: what is wrong".
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "FILE: cut off at byte 1234 ...": the part before that byte is valid.
class TruncatedJournal : public JournalError {
 public:
  using JournalError::JournalError;
};

class JournalReader {
 public:
  /// Throws JournalError if the file cannot be opened, is not a journal or has another format, and
  /// TruncatedJournal if it ends before its first record.
  explicit JournalReader(const std::string& path);
  /// Reads a journal in memory in the same way.
  JournalReader(std::string name, Bytes contents);

  const Header& header() const { return header_; }

  /// Returns the next record's body, valid until the next call; nothing at the end. A journal that
  /// is truncated, within a record or after one, ends there, and torn() is true: its writer was
  /// killed or ran out of space. A damaged record throws JournalError.
  std::optional<Bytes> next();
  bool torn() const { return torn_; }
  /// Throws TruncatedJournal if the journal is torn. Called at the end.
  void require_whole() const;

  /// Returns the position in the file of the record that next() returned.
  uint64_t offset() const { return record_offset_; }

  /// Throws JournalError for a record whose body is invalid.
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
