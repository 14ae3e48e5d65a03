#include "emulator/engine/adversarial/pending_writes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "emulator/engine/base/limits.h"

namespace rocemu::engine::adversarial {
namespace {

/// The maximum numbers of pending writes and of pending bytes. If either is exceeded, all pending
/// bytes are written.
constexpr size_t kMaxPending = 256;
constexpr size_t kMaxPendingBytes = size_t{16} << 20;

bool is_placed(const PendingWrite& write) {
  return write.placed == (1u << write.plan.waves()) - 1;
}

/// Calls `visit(range of the piece, its offset in the bytes)` for each piece.
template <class Visit>
void for_each_granule(std::span<const RemoteRange> ranges, uint32_t granule, Visit visit) {
  uint64_t offset = 0;
  for (const RemoteRange& range : ranges) {
    for (uint64_t done = 0; done < range.length;) {
      const uint64_t address = range.address + done;
      const uint64_t size = std::min(granule - address % granule, range.length - done);
      visit(RemoteRange{address, size, range.is_shared}, offset);
      done += size;
      offset += size;
    }
  }
}

/// Returns whether a byte may be both in the write and in the ranges. Shared memory may have the
/// same bytes at other addresses.
bool overlap(const PendingWrite& write, ClientId client, std::span<const RemoteRange> ranges) {
  return std::ranges::any_of(write.ranges, [&](const RemoteRange& one) {
    return std::ranges::any_of(ranges, [&](const RemoteRange& other) {
      if (one.is_shared && other.is_shared) return true;
      return write.client == client && one.address < other.address + other.length &&
             other.address < one.address + one.length;
    });
  });
}

Instant last_due(const PendingWrite& write) {
  Instant last{};
  for (uint32_t wave = 0; wave < write.plan.waves(); ++wave) {
    if ((write.placed >> wave & 1) == 0) last = std::max(last, write.due[wave]);
  }
  return last;
}

}  // namespace

void PendingWrites::add(PendingWrite&& write) {
  size_t bytes = write.bytes.size();
  for (const PendingWrite& other : list_) bytes += other.bytes.size();
  if (list_.size() >= kMaxPending || bytes > kMaxPendingBytes) place_all();
  list_.push_back(std::move(write));
}

/// Writes the pieces of one wave; adjacent pieces are written together.
void PendingWrites::place_wave(PendingWrite& write, uint32_t wave) {
  if ((write.placed >> wave & 1) != 0) return;
  write.placed |= 1u << wave;
  uint64_t count = 0;
  for_each_granule(write.ranges, write.plan.granule,
                   [&](const RemoteRange&, uint64_t) { ++count; });
  std::vector<RemoteRange> to;
  std::vector<std::span<const uint8_t>> from;
  const auto flush = [&] {
    if (!to.empty()) static_cast<void>(memory_.write_soon(write.client, to, from));
    to.clear();
    from.clear();
  };
  uint64_t index = 0;
  for_each_granule(write.ranges, write.plan.granule, [&](const RemoteRange& piece, uint64_t at) {
    if (write.plan.wave_of(index++, count) != wave) return;
    const auto bytes = std::span<const uint8_t>(write.bytes).subspan(at, piece.length);
    if (!to.empty() && to.back().address + to.back().length == piece.address &&
        from.back().data() + from.back().size() == bytes.data()) {
      to.back().length += piece.length;
      from.back() = {from.back().data(), from.back().size() + bytes.size()};
      return;
    }
    if (to.size() == kMaxSge) flush();
    to.push_back(piece);
    from.push_back(bytes);
  });
  flush();
}

void PendingWrites::place(PendingWrite& write) {
  for (uint32_t wave = 0; wave < write.plan.waves(); ++wave) place_wave(write, wave);
}

void PendingWrites::forget_placed() {
  std::erase_if(list_, is_placed);
}

template <class Matches>
void PendingWrites::place_if(Matches matches) {
  if (list_.empty()) return;
  for (PendingWrite& write : list_) {
    if (matches(write)) place(write);
  }
  forget_placed();
}

void PendingWrites::place_due(Instant now) {
  std::vector<std::tuple<Instant, size_t, uint32_t>> due;
  for (size_t i = 0; i < list_.size(); ++i) {
    for (uint32_t wave = 0; wave < list_[i].plan.waves(); ++wave) {
      if ((list_[i].placed >> wave & 1) == 0 && list_[i].due[wave] <= now) {
        due.emplace_back(list_[i].due[wave], i, wave);
      }
    }
  }
  if (due.empty()) return;
  std::ranges::sort(due);
  for (const auto& [at, index, wave] : due) place_wave(list_[index], wave);
  forget_placed();
}

void PendingWrites::place_stream(const Stream& stream) {
  place_if([&](const PendingWrite& write) { return write.stream == stream; });
}

void PendingWrites::place_overlapping(ClientId client, std::span<const RemoteRange> ranges) {
  for (bool found = true; found;) {
    const auto touched = std::ranges::find_if(
        list_, [&](const PendingWrite& write) { return overlap(write, client, ranges); });
    found = touched != list_.end();
    if (found) place_stream(Stream(touched->stream));
  }
}

void PendingWrites::place_client(ClientId client) {
  place_if([&](const PendingWrite& write) {
    return write.client == client || write.qp_client == client;
  });
}

void PendingWrites::place_all() {
  place_if([](const PendingWrite&) { return true; });
}

void PendingWrites::drop(ClientId client) {
  std::erase_if(list_, [&](const PendingWrite& write) { return write.client == client; });
}

std::optional<Instant> PendingWrites::next_due() const {
  std::optional<Instant> first;
  for (const PendingWrite& write : list_) {
    for (uint32_t wave = 0; wave < write.plan.waves(); ++wave) {
      if ((write.placed >> wave & 1) == 0 && (!first || write.due[wave] < *first)) {
        first = write.due[wave];
      }
    }
  }
  return first;
}

Instant PendingWrites::end_of(const Stream& stream, Instant now) const {
  for (const PendingWrite& write : list_) {
    if (write.stream == stream) now = std::max(now, last_due(write));
  }
  return now;
}

Instant PendingWrites::ordered_end_of(const Stream& stream, Instant now) const {
  for (const PendingWrite& write : list_) {
    if (write.stream == stream && write.is_ordered) now = std::max(now, last_due(write));
  }
  return now;
}

}  // namespace rocemu::engine::adversarial
