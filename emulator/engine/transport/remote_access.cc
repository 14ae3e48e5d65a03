#include "emulator/engine/transport/remote_access.h"

#include <array>
#include <bit>

#include "emulator/engine/objects/memory_access.h"

namespace rocemu::engine::remote_access {

using wire::Operation;

Verdict refuse(TransportContext& context, const QueuePair& qp, const MemoryUser& user,
               uint32_t rkey, MemoryTable::Extent bytes, uint32_t access) {
  const MemoryTable::Refusal why = context.objects().mrs.why_refused(user, rkey, access);
  context.note(AccessRefused{qp.client, qp.device, qp.number, QpNumber{qp.attr.dest_qp_num}, rkey,
                             bytes.address, bytes.length, access, why.obstacle, why.address,
                             why.length, why.is_window});
  return Verdict::kRemoteAccess;
}

std::optional<Verdict> write(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                             const wire::OpcodeInfo& info) {
  RecvHalf& recv = qp.recv;
  const wire::Reth& reth = recv.reth;
  const auto resolve = [&](uint64_t offset, uint64_t length) {
    return context.objects().mrs.resolve_remote(qp.memory_user(), reth.rkey, reth.va + offset,
                                                length, abi::kAccessRemoteWrite);
  };
  const auto refusal = [&] {
    return refuse(context, qp, qp.memory_user(), reth.rkey, {reth.va, reth.dma_length},
                  abi::kAccessRemoteWrite);
  };
  std::optional<TranslatedAddress> whole;
  if (info.is_first) {
    recv.reth = packet.reth;
    if (reth.dma_length > kMaxMessage) return Verdict::kInvalidRequest;
    // C9-88: a WRITE of 0 bytes accesses no memory, so its R_Key is not checked.
    if (reth.dma_length != 0 && !(whole = resolve(0, reth.dma_length))) return refusal();
  }
  // IBTA vol 1, 9.7.4.1.6: the payloads of the message add up to the length in the RETH.
  const uint64_t after = recv.received + packet.payload.size();
  if (info.is_last ? after != reth.dma_length : after >= reth.dma_length) {
    return Verdict::kInvalidRequest;
  }
  PacketRun& run = context.run_at_hand();
  if (packet.payload.empty() || run.is_written()) return std::nullopt;
  // The R_Key is checked again for each packet, since the region may have been destroyed since the
  // message began.
  const auto memory_of = [&](uint64_t bytes) {
    const auto found = resolve(recv.received, bytes);
    return found ? std::optional(MemoryList(*found, bytes)) : std::nullopt;
  };
  if (run.write_together(context.memory(), reth.dma_length - recv.received, memory_of)) {
    return std::nullopt;
  }
  const bool is_whole = whole && packet.payload.size() == reth.dma_length;
  const auto target = is_whole ? whole : resolve(recv.received, packet.payload.size());
  if (!target) return refusal();
  const std::array<std::span<const uint8_t>, 1> source{packet.payload};
  return verdict_of(MemoryList(*target, packet.payload.size()).write(context.memory(), source),
                    Verdict::kRemoteMemoryUnreachable);
}

std::optional<Verdict> begin_read(TransportContext& context, QueuePair& qp,
                                  const wire::Packet& packet, Response& response) {
  response = {.kind = Response::Kind::kRead,
              .psn = packet.bth.psn,
              .pd = qp.pd,
              .address = packet.reth.va,
              .rkey = packet.reth.rkey,
              .left = packet.reth.dma_length};
  if (packet.reth.dma_length > kMaxMessage) return Verdict::kInvalidRequest;
  if (packet.reth.dma_length == 0) return std::nullopt;
  const bool readable = context.objects()
                            .mrs
                            .resolve_remote(qp.memory_user(), packet.reth.rkey, packet.reth.va,
                                            packet.reth.dma_length, abi::kAccessRemoteRead)
                            .has_value();
  if (readable) return std::nullopt;
  return refuse(context, qp, qp.memory_user(), packet.reth.rkey,
                {packet.reth.va, packet.reth.dma_length}, abi::kAccessRemoteRead);
}

namespace {

/// Executes an ATOMIC WRITE of 8 bytes (annex A19).
std::optional<Verdict> atomic_write(TransportContext& context, QueuePair& qp,
                                    const wire::Packet& packet) {
  constexpr uint64_t kSize = sizeof(uint64_t);
  const wire::Reth& reth = packet.reth;
  if (reth.dma_length != kSize || packet.payload.size() != kSize || reth.va % kSize != 0) {
    return Verdict::kInvalidRequest;
  }
  const auto target = context.objects().mrs.resolve_remote(qp.memory_user(), reth.rkey, reth.va,
                                                           kSize, abi::kAccessRemoteWrite);
  if (!target)
    return refuse(context, qp, qp.memory_user(), reth.rkey, {reth.va, kSize},
                  abi::kAccessRemoteWrite);
  const std::array<std::span<const uint8_t>, 1> source{packet.payload};
  return verdict_of(MemoryList(*target, kSize).write(context.memory(), source),
                    Verdict::kRemoteMemoryUnreachable);
}

/// Checks a FLUSH (annex A19). Earlier writes are already visible to every processor, so only the
/// response is needed. (rocemu cannot guarantee persistence across a power failure.)
std::optional<Verdict> flush(TransportContext& context, QueuePair& qp, const wire::Packet& packet) {
  const uint32_t placement = packet.feth.placement;
  constexpr uint32_t kGlobal = wire::Feth::kGlobalVisibility,
                     kPersistent = wire::Feth::kPersistence;
  if (placement == 0 || (placement & ~(kGlobal | kPersistent)) != 0) {
    return Verdict::kInvalidRequest;
  }
  const uint32_t access = ((placement & kGlobal) != 0 ? abi::kAccessFlushGlobal : 0u) |
                          ((placement & kPersistent) != 0 ? abi::kAccessFlushPersistent : 0u);
  if ((qp.attr.qp_access_flags & access) != access) return Verdict::kInvalidRequest;

  const wire::Reth& reth = packet.reth;
  MemoryTable::Extent extent{reth.va, reth.dma_length};
  switch (packet.feth.selectivity) {
    case wire::Feth::kRange:
      break;
    case wire::Feth::kRegion: {
      const auto whole = context.objects().mrs.extent_of(reth.rkey);
      if (!whole) return refuse(context, qp, qp.memory_user(), reth.rkey, extent, access);
      extent = *whole;
      break;
    }
    default:
      return Verdict::kInvalidRequest;
  }
  const bool granted =
      context.objects()
          .mrs.resolve_remote(qp.memory_user(), reth.rkey, extent.address, extent.length, access)
          .has_value();
  if (granted) return std::nullopt;
  return refuse(context, qp, qp.memory_user(), reth.rkey, extent, access);
}

/// Executes a CMP_SWAP or FETCH_ADD on 8 bytes in host byte order (IBTA vol 1, 9.4.5).
std::optional<Verdict> execute_atomic(TransportContext& context, QueuePair& qp,
                                      const wire::Packet& packet, const wire::OpcodeInfo& info,
                                      uint64_t& original) {
  constexpr uint64_t kSize = sizeof(uint64_t);
  if (packet.atomic.va % kSize != 0) return Verdict::kInvalidRequest;  // C9-96
  const auto word_address = context.objects().mrs.resolve_remote(
      qp.memory_user(), packet.atomic.rkey, packet.atomic.va, kSize, abi::kAccessRemoteAtomic);
  if (!word_address)
    return refuse(context, qp, qp.memory_user(), packet.atomic.rkey, {packet.atomic.va, kSize},
                  abi::kAccessRemoteAtomic);
  const MemoryList word(*word_address, kSize);
  std::array<uint8_t, kSize> bytes{};
  const std::array<std::span<uint8_t>, 1> target{bytes};
  if (const auto verdict =
          verdict_of(word.read(context.memory(), target), Verdict::kRemoteMemoryUnreachable)) {
    return verdict;
  }
  original = std::bit_cast<uint64_t>(bytes);
  if (info.operation == Operation::kCompareSwap && original != packet.atomic.compare) {
    return std::nullopt;
  }
  bytes = std::bit_cast<std::array<uint8_t, kSize>>(info.operation == Operation::kFetchAdd
                                                        ? original + packet.atomic.swap_add
                                                        : packet.atomic.swap_add);
  const std::array<std::span<const uint8_t>, 1> source{bytes};
  const MemoryResult written = word.write(context.memory(), source);
  // The word was readable just now, so the write has only been postponed: the NIC does not access
  // the word before it is written. The atomic must not be executed a second time.
  if (written == MemoryResult::kNotYet) return std::nullopt;
  return verdict_of(written, Verdict::kRemoteMemoryUnreachable);
}

}  // namespace

std::optional<Verdict> execute(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                               const wire::OpcodeInfo& info, Response& response) {
  switch (info.operation) {
    case Operation::kReadRequest:
      return begin_read(context, qp, packet, response);
    case Operation::kAtomicWrite:
      return atomic_write(context, qp, packet);
    case Operation::kFlush:
      return flush(context, qp, packet);
    default:
      response.kind = Response::Kind::kAtomic;
      return execute_atomic(context, qp, packet, info, response.value);
  }
}

}  // namespace rocemu::engine::remote_access
