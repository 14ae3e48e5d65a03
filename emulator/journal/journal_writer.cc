#include "emulator/journal/journal_writer.h"

#include <cstring>

#include "wire/icrc.h"

namespace rocemu::journal {
namespace {

constexpr size_t kHandOver = 1 << 20;

}  // namespace

uint32_t record_crc(uint32_t length, Bytes body) {
  const auto crc_of = [](uint32_t crc, const void* bytes, size_t size) {
    return wire::crc32(crc, {static_cast<const uint8_t*>(bytes), size});
  };
  return crc_of(crc_of(0, &length, sizeof length), body.data(), body.size());
}

JournalWriter::JournalWriter(const std::string& path, const Header& header)
    : path_(path), file_(path) {
  buffer_.reserve(kHandOver + kHandOver / 4);
  Appender to(buffer_);
  to.put(kMagic);
  to.put(kFormatVersion);
  begin_record();
  to.raw_text(to_json(header));
  end_record();
  flush();
}

void JournalWriter::begin_record() {
  begin_ = buffer_.size();
  Appender(buffer_).put(RecordFrame{});
}

void JournalWriter::end_record() {
  const Bytes body = Bytes(buffer_).subspan(begin_ + sizeof(RecordFrame));
  RecordFrame frame{static_cast<uint32_t>(body.size()), 0};
  frame.crc = record_crc(frame.length, body);
  std::memcpy(buffer_.data() + begin_, &frame, sizeof frame);
  if (buffer_.size() >= kHandOver) flush();
}

void JournalWriter::finish() {
  Appender(buffer_).put(RecordFrame{kEndOfJournal, record_crc(kEndOfJournal, {})});
}

std::string JournalWriter::take_error() {
  const int error = told_ ? 0 : file_.error();
  if (error == 0) return "";
  told_ = true;
  return "cannot write " + path_ + ": " + std::strerror(error);
}

}  // namespace rocemu::journal
