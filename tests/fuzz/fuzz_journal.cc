// Fuzzes a replay with journals of any contents: it must reach the journal's end, a difference, or
// an error that names the place. Checksums are corrected first, since otherwise nearly all inputs
// would be rejected by them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "emulator/journal/journal_reader.h"
#include "emulator/journal/journal_writer.h"
#include "emulator/journal/replay.h"

using namespace rocemu::journal;

namespace {

void put_checksums_right(std::vector<std::byte>& file) {
  size_t at = sizeof kMagic + sizeof kFormatVersion;
  RecordFrame frame;
  while (at + sizeof frame <= file.size()) {
    std::memcpy(&frame, file.data() + at, sizeof frame);
    const size_t begin = at + sizeof frame;
    if (frame.length > file.size() - begin) return;
    frame.crc = record_crc(frame.length, Bytes(file).subspan(begin, frame.length));
    std::memcpy(file.data() + at, &frame, sizeof frame);
    at = begin + frame.length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  put_checksums_right(file);
  try {
    JournalReader journal("f", file);
    Replay(journal).run();
  } catch (const JournalError& error) {
    if (std::string_view(error.what()).substr(0, 2) != "f:") std::abort();
  }
  return 0;
}
