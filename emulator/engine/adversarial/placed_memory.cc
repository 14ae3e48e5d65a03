#include "emulator/engine/adversarial/placed_memory.h"

#include <algorithm>
#include <utility>

#include "emulator/engine/adversarial/atomicity.h"
#include "emulator/engine/adversarial/relaxed.h"

namespace rocemu::engine::adversarial {

PlacedMemory::PlacedMemory(Classes classes, uint64_t seed, HostMemory& memory, const Step& step,
                           AllChoices& choices)
    : classes_(classes),
      memory_(memory),
      step_(step),
      choices_(choices),
      pending_(memory),
      placement_(seed, Class::kPlacement),
      atomicity_(seed, Class::kAtomicity),
      relaxed_(seed, Class::kRelaxed) {}

void PlacedMemory::begin(const Incoming& incoming) {
  incoming_ = incoming;
  if (incoming.begins_message) begin_message();
}

/// Returns `drawn` if this choice is made, or else a plan that writes the message at once.
PlacementPlan PlacedMemory::choose(Choices& of, const PlacementPlan& drawn, const char* what,
                                   uint64_t number) {
  if (drawn.delay == Duration(0)) return drawn;
  const bool is_made = of.make([&] {
    return std::string(what) + ", message " + std::to_string(number) + " to QP " +
           std::to_string(incoming_.stream.qp.value) + ", " + in_words(drawn);
  });
  return is_made ? drawn : PlacementPlan{};
}

void PlacedMemory::begin_message() {
  Message& message = messages_[incoming_.stream];
  const uint64_t number = message.number + 1;
  message = {};
  message.number = number;
  switch (incoming_.kind) {
    case Kind::kThrough:
      return;
    case Kind::kAtomic:
      if (classes_.has(Class::kAtomicity))
        message.plan = choose(choices_.atomicity, draw_atomic_store(atomicity_),
                              "the store of an atomic", number);
      return;
    case Kind::kWrite:
      message.not_before = pending_.ordered_end_of(incoming_.stream, step_.now());
      if (classes_.has(Class::kRelaxed))
        message.relaxed_plan = choose(choices_.relaxed, draw_relaxed(relaxed_), "a WRITE", number);
      if (classes_.has(Class::kPlacement)) {
        const PlacementPlan drawn = draw_placement(placement_);
        // Consecutive WRITEs wait for each other, so the sum of their delays must be limited.
        if (message.not_before <= step_.now() + kLongest)
          message.plan = choose(choices_.placement, drawn, "a WRITE", number);
      }
      return;
    case Kind::kBuffer:
      if (classes_.has(Class::kPlacement))
        message.plan = choose(
            choices_.placement, draw_placement(placement_),
            incoming_.stream.is_requester ? "the data of a READ or atomic" : "a SEND", number);
      return;
  }
}

MemoryResult PlacedMemory::write_soon(ClientId client, std::span<const RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from) {
  // Pending writes to the same bytes are carried out first, because the last write of a byte must
  // win.
  pending_.place_overlapping(client, to);
  if (incoming_.kind == Kind::kThrough) return memory_.write_soon(client, to, from);

  const Message& message = messages_[incoming_.stream];
  const bool is_relaxed =
      incoming_.kind == Kind::kWrite && classes_.has(Class::kRelaxed) &&
      std::ranges::all_of(to, [](const RemoteRange& range) { return range.is_relaxed; });
  PendingWrite write{.stream = incoming_.stream,
                     .client = client,
                     .qp_client = incoming_.qp_client,
                     .is_ordered = !is_relaxed && incoming_.kind != Kind::kBuffer,
                     .is_relaxed = is_relaxed,
                     .ranges = {},
                     .bytes = {},
                     .plan = is_relaxed ? message.relaxed_plan : message.plan};
  const Instant first = is_relaxed ? step_.now() : std::max(step_.now(), message.not_before);
  Instant last = first;
  for (uint32_t wave = 0; wave < write.plan.waves(); ++wave) {
    write.due[wave] = first + write.plan.delay_of(wave);
    last = std::max(last, write.due[wave]);
  }
  if (last <= step_.now()) return memory_.write_soon(client, to, from);
  write.ranges.assign(to.begin(), to.end());
  for (const std::span<const uint8_t> part : from) {
    write.bytes.insert(write.bytes.end(), part.begin(), part.end());
  }
  pending_.add(std::move(write));
  pending_.place_due(step_.now());
  return MemoryResult::kDone;
}

MemoryResult PlacedMemory::write_received(ClientId client, QpNumber /*qp*/, bool /*is_first*/,
                                          std::span<const RemoteRange> to,
                                          std::span<const std::span<const uint8_t>> from) {
  return write_soon(client, to, from);
}

/// Writes at once, because the result reports whether the memory exists.
MemoryResult PlacedMemory::write(ClientId client, std::span<const RemoteRange> to,
                                 std::span<const std::span<const uint8_t>> from) {
  pending_.place_overlapping(client, to);
  pending_.place_stream(incoming_.stream);
  return memory_.write(client, to, from);
}

MemoryResult PlacedMemory::read(ClientId client, std::span<const RemoteRange> from,
                                std::span<const std::span<uint8_t>> to) {
  pending_.place_overlapping(client, from);
  return memory_.read(client, from, to);
}

MemoryResult PlacedMemory::read_posted(ClientId client, uint32_t slot, uint64_t offset,
                                       std::span<const RemoteRange> from,
                                       std::span<const std::span<uint8_t>> to) {
  pending_.place_overlapping(client, from);
  return memory_.read_posted(client, slot, offset, from, to);
}

uint32_t PlacedMemory::completions_taken(ClientId client, CqId cq) {
  return memory_.completions_taken(client, cq);
}

}  // namespace rocemu::engine::adversarial
