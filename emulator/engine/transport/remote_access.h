// A peer's accesses to the application's memory: RDMA WRITE, RDMA READ, atomics, FLUSH
#pragma once

#include <optional>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::remote_access {

/// Returns the verdict for an access that MemoryTable::resolve_remote() does not allow.
Verdict refuse(TransportContext& context, const QueuePair& qp, const MemoryUser& user,
               uint32_t rkey, MemoryTable::Extent bytes, uint32_t access);

/// Executes a packet of a WRITE: checks the RETH if it is the first packet, checks the length, and
/// writes the payload.
std::optional<Verdict> write(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                             const wire::OpcodeInfo& info);

/// Begins a READ. If the peer may read the memory, `response` describes the data to send.
std::optional<Verdict> begin_read(TransportContext& context, QueuePair& qp,
                                  const wire::Packet& packet, Response& response);

/// Executes a request that has a separate response (READ, atomics, ATOMIC WRITE, FLUSH), and fills
/// in the fields of `response` that depend on the request.
std::optional<Verdict> execute(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                               const wire::OpcodeInfo& info, Response& response);

}  // namespace rocemu::engine::remote_access
