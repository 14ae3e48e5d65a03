// Accesses of a peer to the application's memory: RDMA WRITE, RDMA READ, atomics, FLUSH
#pragma once

#include <optional>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::remote_access {

/// Refuses an access that MemoryTable::resolve_remote() does not allow.
Verdict refuse(TransportContext& context, const QueuePair& qp, const MemoryUser& user,
               uint32_t rkey, MemoryTable::Extent bytes, uint32_t access);

/// Executes a WRITE: checks the RETH of the first packet, then the length, and writes.
std::optional<Verdict> write(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                             const wire::OpcodeInfo& info);

/// Begins a READ: returns what must be sent, if the peer may read it.
std::optional<Verdict> begin_read(TransportContext& context, QueuePair& qp,
                                  const wire::Packet& packet, Response& response);

/// Executes a request that has its own response (READ, atomics, ATOMIC WRITE, FLUSH), and fills in
/// the fields of `response` that depend on it.
std::optional<Verdict> execute(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                               const wire::OpcodeInfo& info, Response& response);

}  // namespace rocemu::engine::remote_access
