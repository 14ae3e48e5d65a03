#include "emulator/journal/memory_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wire/icrc.h"

namespace rocemu::journal {
namespace {

using engine::ClientId;
using engine::MemoryResult;
using engine::RemoteRange;

enum class CallKind : uint8_t { kRead = 1, kWrite, kCompletionsTaken };
enum class Payload : uint8_t { kHere, kAsLastTime };

uint64_t total(std::span<const RemoteRange> ranges) {
  uint64_t length = 0;
  for (const RemoteRange& range : ranges) length += range.length;
  return length;
}

void append_question(Appender& to, CallKind kind, ClientId client,
                     std::span<const RemoteRange> ranges) {
  to.put(kind);
  to.put(client);
  to.put(static_cast<uint32_t>(ranges.size()));
  for (const RemoteRange& range : ranges) {
    to.put(range.address);
    to.put(range.length);
  }
}

/// Computes a checksum of the pieces. For a longer piece it covers only both ends: the piece comes
/// from a frame, whose ICRC is in the journal, so it suffices to check that the engine wrote the
/// same part of the frame.
uint32_t checksum(std::span<const std::span<const uint8_t>> parts) {
  constexpr size_t kEnd = 64;
  uint32_t crc = 0;
  for (const auto& part : parts) {
    if (part.size() <= 2 * kEnd) {
      crc = wire::crc32(crc, part);
    } else {
      crc = wire::crc32(crc, part.first(kEnd));
      crc = wire::crc32(crc, part.last(kEnd));
    }
  }
  return crc;
}

/// Appends a write with a checksum of its bytes. The bytes are not stored, since they come from
/// frames.
void append_write(Appender& to, ClientId client, std::span<const RemoteRange> ranges,
                  std::span<const std::span<const uint8_t>> from) {
  append_question(to, CallKind::kWrite, client, ranges);
  to.put(checksum(from));
}

void append_completions_taken(Appender& to, ClientId client, engine::CqId cq) {
  to.put(CallKind::kCompletionsTaken);
  to.put(client);
  to.put(cq);
}

std::string in_words(std::string_view verb, ClientId client, std::span<const RemoteRange> ranges) {
  if (ranges.empty()) return fmt::format("{} nothing of client {}", verb, client.value);
  return fmt::format("{} {} bytes of client {} from {:#x} on", verb, total(ranges), client.value,
                     ranges[0].address);
}

bool equal(const std::vector<uint8_t>& bytes, std::span<const std::span<uint8_t>> parts) {
  size_t at = 0;
  for (const auto& part : parts) {
    if (!std::equal(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(at))) {
      return false;
    }
    at += part.size();
  }
  return true;
}

}  // namespace

RecentPayloads::Slot* RecentPayloads::slot_for(ClientId client, std::span<const RemoteRange> ranges,
                                               uint64_t length) {
  if (length < kLeast || length > kMax || ranges.empty()) return nullptr;
  const uint64_t address = ranges[0].address;
  uint64_t hash = (address ^ (uint64_t{client.value} << 48) ^ (length << 32)) * 0x9e3779b97f4a7c15u;
  Slot& slot = slots_[(hash >> 32) % kSlots];
  if (slot.client != client.value || slot.address != address || slot.bytes.size() != length) {
    slot.client = client.value;
    slot.address = address;
    slot.bytes.clear();
  }
  return &slot;
}

// ---- Recording ------------------------------------------------------------------------------

MemoryResult RecordingMemory::read(ClientId client, std::span<const RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) {
  const MemoryResult result = memory_.read(client, from, to);
  record_read(client, from, to, result);
  return result;
}

MemoryResult RecordingMemory::read_posted(ClientId client, uint32_t slot, uint64_t offset,
                                          std::span<const RemoteRange> from,
                                          std::span<const std::span<uint8_t>> to) {
  const MemoryResult result = memory_.read_posted(client, slot, offset, from, to);
  record_read(client, from, to, result);
  return result;
}

void RecordingMemory::record_read(ClientId client, std::span<const RemoteRange> from,
                                  std::span<const std::span<uint8_t>> to, MemoryResult result) {
  if (!recording_) return;
  Appender record(record_);
  append_question(record, CallKind::kRead, client, from);
  record.put(result);
  if (result != MemoryResult::kDone) return;
  const uint64_t length = total(from);
  RecentPayloads::Slot* slot = recent_.slot_for(client, from, length);
  if (slot != nullptr && slot->bytes.size() == length && equal(slot->bytes, to)) {
    record.put(Payload::kAsLastTime);
    return;
  }
  record.put(Payload::kHere);
  if (slot != nullptr) slot->bytes.clear();
  for (const auto& part : to) {
    record.raw(std::as_bytes(part));
    if (slot != nullptr) slot->bytes.insert(slot->bytes.end(), part.begin(), part.end());
  }
}

MemoryResult RecordingMemory::write(ClientId client, std::span<const RemoteRange> to,
                                    std::span<const std::span<const uint8_t>> from) {
  const MemoryResult result = memory_.write(client, to, from);
  record_write(client, to, from, result);
  return result;
}

MemoryResult RecordingMemory::write_soon(ClientId client, std::span<const RemoteRange> to,
                                         std::span<const std::span<const uint8_t>> from) {
  const MemoryResult result = memory_.write_soon(client, to, from);
  record_write(client, to, from, result);
  return result;
}

MemoryResult RecordingMemory::write_received(ClientId client, engine::QpNumber qp, bool is_first,
                                             std::span<const RemoteRange> to,
                                             std::span<const std::span<const uint8_t>> from) {
  const MemoryResult result = memory_.write_received(client, qp, is_first, to, from);
  record_write(client, to, from, result);
  return result;
}

void RecordingMemory::record_write(ClientId client, std::span<const RemoteRange> to,
                                   std::span<const std::span<const uint8_t>> from,
                                   MemoryResult result) {
  if (!recording_) return;
  Appender record(record_);
  append_write(record, client, to, from);
  record.put(result);
}

uint32_t RecordingMemory::completions_taken(ClientId client, engine::CqId cq) {
  const uint32_t taken = memory_.completions_taken(client, cq);
  if (!recording_) return taken;
  Appender record(record_);
  append_completions_taken(record, client, cq);
  record.put(taken);
  return taken;
}

// ---- Replaying ------------------------------------------------------------------------------

void ReplayedMemory::begin_step(Bytes calls) {
  calls_ = Taker(calls);
  all_ = calls;
  difference_.clear();
}

std::string ReplayedMemory::difference() const {
  if (!difference_.empty() || calls_.at_end()) return difference_;
  return "the engine makes fewer accesses to the clients' memory than were recorded";
}

/// Returns whether the engine makes the recorded call. After the first call that differs, it
/// returns false, since the recorded results no longer apply.
bool ReplayedMemory::expect(Bytes asked, const std::string& what) {
  if (!difference_.empty() || failed_) return false;
  if (calls_.at_end()) {
    difference_ = "the engine now wants to " + what + ", which is not in the recording";
    return false;
  }
  const Bytes recorded = calls_.raw(std::min(asked.size(), all_.size() - calls_.position()));
  if (std::ranges::equal(asked, recorded)) return true;
  difference_ = "the engine now wants to " + what + ", but the recording has another access here";
  return false;
}

MemoryResult ReplayedMemory::read(ClientId client, std::span<const RemoteRange> from,
                                  std::span<const std::span<uint8_t>> to) {
  asked_.clear();
  Appender asked(asked_);
  append_question(asked, CallKind::kRead, client, from);
  if (!expect(asked_, in_words("read", client, from))) return MemoryResult::kFault;
  const auto result = calls_.take_enum(MemoryResult::kNotYet);
  if (result != MemoryResult::kDone || calls_.failed()) {
    failed_ |= calls_.failed();
    return calls_.failed() ? MemoryResult::kFault : result;
  }
  const uint64_t length = total(from);
  RecentPayloads::Slot* slot = recent_.slot_for(client, from, length);
  std::span<const uint8_t> bytes;
  if (calls_.take_enum(Payload::kAsLastTime) == Payload::kAsLastTime) {
    if (slot != nullptr) bytes = slot->bytes;
    failed_ |= bytes.size() != length;
  } else {
    const Bytes here = calls_.raw(length);
    bytes = {reinterpret_cast<const uint8_t*>(here.data()), here.size()};
    if (slot != nullptr) slot->bytes.assign(bytes.begin(), bytes.end());
  }
  failed_ |= calls_.failed();
  if (failed_) return MemoryResult::kFault;
  for (const auto& part : to) {
    if (!part.empty()) std::memcpy(part.data(), bytes.data(), part.size());
    bytes = bytes.subspan(part.size());
  }
  return result;
}

MemoryResult ReplayedMemory::write(ClientId client, std::span<const RemoteRange> to,
                                   std::span<const std::span<const uint8_t>> from) {
  asked_.clear();
  Appender asked(asked_);
  append_write(asked, client, to, from);
  if (!expect(asked_, in_words("write", client, to))) return MemoryResult::kFault;
  const auto result = calls_.take_enum(MemoryResult::kNotYet);
  failed_ |= calls_.failed();
  return failed_ ? MemoryResult::kFault : result;
}

uint32_t ReplayedMemory::completions_taken(ClientId client, engine::CqId cq) {
  asked_.clear();
  Appender asked(asked_);
  append_completions_taken(asked, client, cq);
  if (!expect(asked_, fmt::format("read the consumer index of CQ {}", cq.value))) return 0;
  const auto taken = calls_.take<uint32_t>();
  failed_ |= calls_.failed();
  return taken;
}

}  // namespace rocemu::journal
