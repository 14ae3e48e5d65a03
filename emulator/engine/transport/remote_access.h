// What a peer does to the application's memory: RDMA WRITE, RDMA READ, atomics, FLUSH.
#pragma once

#include <optional>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::remote_access {

/// WRITE: checks the RETH on the first packet, then the length, and writes.
std::optional<Verdict> write(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                             const wire::OpcodeInfo& info);

/// READ: what is to be sent, if the peer may read it.
std::optional<Verdict> begin_read(TransportContext& context, QueuePair& qp,
                                  const wire::Packet& packet, Response& response);

/// ATOMIC WRITE of 8 bytes, and FLUSH (annex A19). Both are answered as a READ of no bytes.
std::optional<Verdict> atomic_write(TransportContext& context, QueuePair& qp,
                                    const wire::Packet& packet);
std::optional<Verdict> flush(TransportContext& context, QueuePair& qp, const wire::Packet& packet);

/// CMP_SWAP and FETCH_ADD on 8 bytes, in host byte order (IBTA vol 1, 9.4.5).
std::optional<Verdict> execute_atomic(TransportContext& context, QueuePair& qp,
                                      const wire::Packet& packet, const wire::OpcodeInfo& info,
                                      uint64_t& original);

}  // namespace rocemu::engine::remote_access
