#include "emulator/journal/journal_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "emulator/journal/journal_writer.h"

namespace rocemu::journal {
namespace {

/// Returns whether the bytes end with the mark of a journal that was recorded to its end.
bool ends_with_end(Bytes bytes) {
  RecordFrame frame{};
  if (bytes.size() < sizeof frame) return false;
  std::memcpy(&frame, bytes.last(sizeof frame).data(), sizeof frame);
  return frame.length == kEndOfJournal && frame.crc == record_crc(kEndOfJournal, {});
}

}  // namespace

JournalReader::JournalReader(const std::string& path)
    : name_(path), file_(std::fopen(path.c_str(), "rbe"), std::fclose) {
  if (file_ == nullptr) {
    throw JournalError("cannot read " + path + ": " + std::strerror(errno));
  }
  std::setvbuf(file_.get(), nullptr, _IOFBF, 1 << 20);
  open();
}

JournalReader::JournalReader(std::string name, Bytes contents)
    : name_(std::move(name)), file_(nullptr, std::fclose) {
  // fmemopen(3) cannot open an empty buffer.
  file_.reset(contents.empty()
                  ? std::fopen("/dev/null", "rbe")
                  : fmemopen(const_cast<std::byte*>(contents.data()), contents.size(), "rb"));
  if (file_ == nullptr) throw JournalError("cannot read " + name_ + ": " + std::strerror(errno));
  open();
}

void JournalReader::open() {
  char magic[sizeof kMagic];
  uint32_t version = 0;
  const bool has_magic = read(magic, sizeof magic);
  if (std::memcmp(magic, kMagic, has_magic ? sizeof magic : offset_) != 0) {
    throw JournalError(name_ +
                       ": this is not a journal of rocemu; `rocemu run --record` writes one");
  }
  constexpr char kInHeader[] = ", inside its header, so the journal cannot be read";
  if (!has_magic || !read(&version, sizeof version)) fail_truncated(offset_, kInHeader);
  if (version != kFormatVersion) {
    throw JournalError(
        fmt::format("{}: the journal has format {}, but this is rocemu {}, which reads format {}: "
                    "replay the journal with the rocemu that recorded it",
                    name_, version, ROCEMU_VERSION, kFormatVersion));
  }
  const std::optional<Bytes> body = next();
  if (!body) fail_truncated(offset_, kInHeader);
  try {
    header_ = parse_header({reinterpret_cast<const char*>(body->data()), body->size()});
  } catch (const std::runtime_error& error) {
    fail(error.what());
  }
}

std::optional<Bytes> JournalReader::next() {
  if (torn_ || ended_) return std::nullopt;
  record_offset_ = offset_;
  RecordFrame frame{};
  if (!read(&frame, sizeof frame)) {
    torn_ = true;
    return std::nullopt;
  }
  if (frame.length == kEndOfJournal) {
    char more;
    if (frame.crc != record_crc(kEndOfJournal, {}) || read(&more, 1)) {
      fail("the end of the journal is damaged, or data follows it");
    }
    ended_ = true;
    return std::nullopt;
  }
  if (frame.length > kMaxRecord) {
    fail(fmt::format("impossible record length {}: the file is damaged", frame.length));
  }
  body_.resize(frame.length);
  if (!read(body_.data(), body_.size())) {
    const Bytes rest = Bytes(body_).first(offset_ - record_offset_ - sizeof frame);
    if (ends_with_end(rest)) {
      fail("a record exceeds the end of the file: the file is damaged");
    }
    torn_ = true;
    return std::nullopt;
  }
  if (record_crc(frame.length, body_) != frame.crc) {
    fail("a record's checksum is wrong: the file is damaged");
  }
  return body_;
}

bool JournalReader::read(void* to, size_t size) {
  const size_t count = size == 0 ? 0 : std::fread(to, 1, size, file_.get());
  offset_ += count;
  if (count == size) return true;
  if (std::ferror(file_.get()) != 0) {
    throw JournalError(fmt::format("{}: byte {}: {}", name_, offset_, std::strerror(errno)));
  }
  return false;
}

void JournalReader::require_whole() const {
  if (torn_) fail_truncated(record_offset_, "");
}

void JournalReader::fail_truncated(uint64_t offset, const char* where) const {
  throw TruncatedJournal(
      fmt::format("{}: cut off at byte {}{}; the recording NIC was killed, or the disk was full",
                  name_, offset, where));
}

void JournalReader::fail(const std::string& what) const {
  throw JournalError(fmt::format("{}: byte {}: {}", name_, record_offset_, what));
}

}  // namespace rocemu::journal
