// Application memory for the engine. Each client has a list of arrays; memory outside of the arrays
// is unmapped. The object also has the numbers of completions that clients have polled.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "wire/require.h"

namespace rocemu::test {

class ArrayMemory : public engine::HostMemory {
 public:
  struct Array {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
    bool readable = true;
    bool writable = true;
  };

  /// Maps an array. The reference stays valid while the client has this array.
  Array& map(engine::ClientId client, uint64_t address, size_t size) {
    Array& array = arrays_[client][address];
    array = {.address = address, .bytes = std::vector<uint8_t>(size)};
    return array;
  }
  void unmap(engine::ClientId client, uint64_t address) { arrays_[client].erase(address); }
  void protect(engine::ClientId client, uint64_t address, bool readable, bool writable) {
    Array& array = arrays_.at(client).at(address);
    array.readable = readable;
    array.writable = writable;
  }

  /// Returns the array's bytes from `address` on, for the test itself.
  std::span<uint8_t> at(engine::ClientId client, uint64_t address, size_t size) {
    Array* array = find(client, address, size);
    return array == nullptr ? std::span<uint8_t>()
                            : std::span(array->bytes).subspan(address - array->address, size);
  }

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override {
    ++reads;
    if (gone.contains(client)) return engine::MemoryResult::kGone;
    if (not_yet.contains(client)) return engine::MemoryResult::kNotYet;
    std::vector<uint8_t> all;
    for (const engine::RemoteRange& range : from) {
      const Array* array = find(client, range.address, range.length);
      if (array == nullptr || !array->readable) return engine::MemoryResult::kFault;
      const uint8_t* begin = array->bytes.data() + (range.address - array->address);
      all.insert(all.end(), begin, begin + range.length);
    }
    size_t done = 0;
    for (const std::span<uint8_t> buffer : to) {
      if (buffer.size() > all.size() - done) return mismatch();
      if (!buffer.empty()) std::memcpy(buffer.data(), all.data() + done, buffer.size());
      done += buffer.size();
    }
    return done == all.size() ? engine::MemoryResult::kDone : mismatch();
  }

  engine::MemoryResult read_posted(engine::ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const engine::RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) override {
    const auto posted = in_slots.find({client, slot});
    if (posted == in_slots.end()) return read(client, from, to);
    for (const std::span<uint8_t> buffer : to) {
      if (offset + buffer.size() > posted->second.size()) return mismatch();
      std::ranges::copy(std::span(posted->second).subspan(offset, buffer.size()), buffer.begin());
      offset += buffer.size();
    }
    return engine::MemoryResult::kDone;
  }

  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) override {
    ++writes;
    if (gone.contains(client)) return engine::MemoryResult::kGone;
    if (not_yet.contains(client)) return engine::MemoryResult::kNotYet;
    std::vector<uint8_t> all;
    for (const auto buffer : from) all.insert(all.end(), buffer.begin(), buffer.end());
    size_t done = 0;
    for (const engine::RemoteRange& range : to) {
      Array* array = find(client, range.address, range.length);
      if (array == nullptr || !array->writable) return engine::MemoryResult::kFault;
      if (range.length > all.size() - done) return mismatch();
      std::memcpy(array->bytes.data() + (range.address - array->address), all.data() + done,
                  range.length);
      done += range.length;
    }
    return done == all.size() ? engine::MemoryResult::kDone : mismatch();
  }

  uint32_t completions_taken(engine::ClientId client, engine::CqId cq) override {
    return taken[{client, cq}];
  }

  bool may_copy(engine::ClientId) override { return copies_directly; }
  bool begin_copy(const engine::DirectCopy& copy) override {
    if (!copies_directly) return false;
    copies.push_back({.key = copy.key,
                      .maker = copy.maker,
                      .from = copy.from,
                      .to = copy.to,
                      .source = {copy.source.begin(), copy.source.end()},
                      .target = {copy.target.begin(), copy.target.end()}});
    ++copies_begun;
    while (copies_at_once && make_copy()) continue;
    return true;
  }
  engine::CopyProgress copy_progress(engine::ClientId maker, const engine::CopyKey& key) override {
    const Copy* copy = find(maker, key);
    return copy != nullptr ? copy->progress : engine::CopyProgress::kNone;
  }
  void forget_copy(engine::ClientId maker, const engine::CopyKey& key) override {
    const Copy* copy = find(maker, key);
    if (copy != nullptr) copies.erase(copies.begin() + (copy - copies.data()));
  }
  void end_copies() override { fail_copies(); }
  void forget_copies(engine::ClientId maker, engine::QpNumber qp) override {
    std::erase_if(copies,
                  [&](const Copy& copy) { return copy.maker == maker && copy.key.qp == qp; });
  }

  /// Makes the oldest copy that is under way, as a program would. Returns false if there is none.
  /// If it fails, all others fail.
  bool make_copy() {
    for (Copy& copy : copies) {
      if (copy.progress != engine::CopyProgress::kUnderWay) continue;
      const uint64_t reads_before = reads, writes_before = writes;
      uint64_t length = 0;
      for (const engine::RemoteRange& range : copy.source) length += range.length;
      std::vector<uint8_t> bytes(length);
      const std::span<uint8_t> to[] = {bytes};
      const std::span<const uint8_t> from[] = {bytes};
      const bool succeeds = read(copy.from, copy.source, to) == engine::MemoryResult::kDone &&
                            write(copy.to, copy.target, from) == engine::MemoryResult::kDone;
      reads = reads_before;
      writes = writes_before;
      copy.progress = engine::CopyProgress::kDone;
      if (!succeeds) fail_copies(copy.key);
      return true;
    }
    return false;
  }
  /// Lets the copy with this key, and all that are under way, fail.
  void fail_copies(const engine::CopyKey& key = {}) {
    for (Copy& copy : copies) {
      if (copy.key == key || copy.progress == engine::CopyProgress::kUnderWay) {
        copy.progress = engine::CopyProgress::kFailed;
      }
    }
  }

  struct Copy {
    engine::CopyKey key;
    engine::ClientId maker, from, to;
    std::vector<engine::RemoteRange> source, target;
    engine::CopyProgress progress = engine::CopyProgress::kUnderWay;
  };
  /// If true, begin_copy() begins copies, and the test makes them.
  bool copies_directly = false;
  /// If true, begin_copy() also makes the copy.
  bool copies_at_once = false;
  std::vector<Copy> copies;
  uint64_t copies_begun = 0;

  /// For each client and CQ, the number of completions that the client has polled.
  std::map<std::pair<engine::ClientId, engine::CqId>, uint32_t> taken;
  /// Clients whose process has ended.
  std::set<engine::ClientId> gone;
  /// Clients whose memory is not available yet.
  std::set<engine::ClientId> not_yet;

  /// Called if the engine passed ranges and buffers that are not "of the same total length", which
  /// a memory need not accept. By default, the program then ends; a test of broken engines can
  /// replace this.
  std::function<void()> on_mismatch = [] { wire::require(false); };

  /// The payload that clients put into slots when they posted a message (abi::SendSlots).
  std::map<std::pair<engine::ClientId, uint32_t>, std::vector<uint8_t>> in_slots;

  // The numbers of reads and writes by the engine so far.
  uint64_t reads = 0;
  uint64_t writes = 0;

 private:
  engine::MemoryResult mismatch() const {
    on_mismatch();
    return engine::MemoryResult::kFault;
  }

  const Copy* find(engine::ClientId maker, const engine::CopyKey& key) const {
    for (const Copy& copy : copies) {
      if (copy.maker == maker && copy.key == key) return &copy;
    }
    return nullptr;
  }

  Array* find(engine::ClientId client, uint64_t address, uint64_t size) {
    const auto arrays = arrays_.find(client);
    if (arrays == arrays_.end()) return nullptr;
    auto candidate = arrays->second.upper_bound(address);
    if (candidate == arrays->second.begin()) return nullptr;
    Array& array = (--candidate)->second;
    const uint64_t offset = address - array.address;
    if (offset > array.bytes.size() || size > array.bytes.size() - offset) return nullptr;
    return &array;
  }

  std::map<engine::ClientId, std::map<uint64_t, Array>> arrays_;
};

/// Returns `size` bytes that differ from their neighbors and from those of another seed.
inline std::vector<uint8_t> pattern(size_t size, uint32_t seed = 1) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = seed * 2654435761u + 12345;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace rocemu::test
