#include "emulator/engine/write_races.h"

#include <algorithm>

#include "emulator/abi/send_opcodes.h"
#include "emulator/engine/transport/requester.h"

namespace rocemu::engine {
namespace {

constexpr size_t kMaxKeys = 4096, kMaxWrites = 64;  // the limits; beyond them no race is detected

/// Returns the QP that executes the requests of this QP; null if it is in another fabric, or is not
/// connected to this QP.
const QueuePair* target_of(const Objects& objects, const QueuePair& qp) {
  if (!qp.path.inside) return nullptr;
  const QueuePair* const target = objects.qps.find(qp.path.peer);
  const bool is_connected = target != nullptr && target->device == *qp.path.inside &&
                            target->can_receive() &&
                            QpNumber{target->attr.dest_qp_num} == qp.number;
  return is_connected ? target : nullptr;
}

/// Returns whether the WQE has certainly not been executed yet, so that no program can have learned
/// that it was executed.
bool is_certain_to_wait(const Objects& objects, const QueuePair& qp, uint32_t index) {
  const SendHalf& send = qp.send;
  if (index - send.queue.head() >= send.queue.size()) return false;  // it is complete
  const SendState& state = send.queue.state(index);
  if (!state.started) return true;
  const QueuePair* const target = target_of(objects, qp);
  return target != nullptr && wire::psn_distance(state.last, target->recv.expected) <= 0;
}

bool is_write(const abi::SendWqe& wqe) {
  const auto opcode = static_cast<abi::WrOpcode>(wqe.opcode);
  return opcode == abi::WrOpcode::kRdmaWrite || opcode == abi::WrOpcode::kRdmaWriteWithImm;
}

}  // namespace

void WriteRaces::note_post(const TransportContext& context, const QueuePair& qp) {
  const WorkRing<SendState>& queue = qp.send.queue;
  if (queue.empty()) return;  // it was flushed
  const uint32_t index = queue.tail() - 1;
  const auto wqe = queue.header<abi::SendWqe>(index);
  const Objects& objects = context.objects();
  if (!is_write(wqe) || target_of(objects, qp) == nullptr) return;
  const uint64_t length = requester::message_length(qp, index, wqe);
  if (length == 0) return;

  if (pending_.size() >= kMaxKeys && !pending_.contains(wqe.rkey)) return;
  std::vector<Write>& writes = pending_[wqe.rkey];
  std::erase_if(writes, [&](const Write& one) {
    const QueuePair* const other = objects.qps.find(one.qp);
    return other == nullptr || other->generation != one.generation ||
           !is_certain_to_wait(objects, *other, one.index);
  });
  for (const Write& one : writes) {
    const uint64_t begin = std::max(one.address, wqe.remote_address);
    const uint64_t end = std::min(one.address + one.length, wqe.remote_address + length);
    if (one.qp == qp.number || begin >= end) continue;
    context.note(
        WritesUnordered{qp.client, qp.device, qp.number, one.qp, wqe.rkey, begin, end - begin});
    break;
  }
  if (writes.size() < kMaxWrites)
    writes.push_back({qp.number, qp.generation, index, wqe.remote_address, length});
}

}  // namespace rocemu::engine
