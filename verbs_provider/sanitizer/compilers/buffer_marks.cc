#include "verbs_provider/sanitizer/compilers/buffer_marks.h"

#include <algorithm>
#include <string>

#include "emulator/abi/send_opcodes.h"
#include "verbs_provider/sanitizer/compilers/initialized_memory.h"

namespace rocemu::sanitizer {
namespace {

bool is_atomic(abi::WrOpcode opcode) {
  return opcode == abi::WrOpcode::kAtomicCmpAndSwp || opcode == abi::WrOpcode::kAtomicFetchAndAdd;
}

/// Returns whether the NIC writes the buffers of the request; otherwise it reads them.
bool is_written(const Queue& queue, const Request& request) {
  const auto opcode = static_cast<abi::WrOpcode>(request.opcode);
  return queue.kind != QueueKind::kSend || opcode == abi::WrOpcode::kRdmaRead || is_atomic(opcode);
}

/// Marks the first `length` bytes of the request's buffers as initialized.
void mark(const Request& request, uint64_t length) {
  for (const MemoryRange& range : request.memory) {
    const uint64_t size = std::min(range.length, length);
    if (range.address != 0 && size != 0)
      mark_initialized(reinterpret_cast<const void*>(range.address), size);
    length -= size;
  }
}

}  // namespace

std::unique_ptr<BufferMarks> BufferMarks::make(const Stacks& stacks) {
  const bool is_wanted =
      address_sanitizer_shadow() || NicThreads::are_wanted() || is_initialization_watched();
  return is_wanted ? std::make_unique<BufferMarks>(stacks) : nullptr;
}

BufferMarks::BufferMarks(const Stacks& stacks) : stacks_(stacks) {
  if (const auto shadow = address_sanitizer_shadow()) poisoned_.emplace(*shadow);
  if (NicThreads::are_wanted()) threads_.emplace();
}

void BufferMarks::release_all() {
  if (poisoned_) poisoned_->release_all();
}

void BufferMarks::locate(const Objects& objects, Request& request) const {
  for (const abi::Sge& sge : request.sges) {
    if (sge.length == 0) continue;
    const auto found = objects.regions_by_lkey.find(sge.lkey);
    const Mr* const region = found != objects.regions_by_lkey.end() ? found->second : nullptr;
    const bool is_within = region != nullptr && region->memory != 0 &&
                           sge.address >= region->address &&
                           sge.address - region->address <= region->length &&
                           sge.length <= region->length - (sge.address - region->address);
    const uint64_t address = is_within ? region->memory + (sge.address - region->address) : 0;
    request.memory.push_back({address, sge.length});
  }
}

/// Returns the stack without our own frames, which are the innermost.
std::span<const uintptr_t> BufferMarks::stack_of(const CallSite& site) const {
  if (site.stack == 0) return {};
  const std::vector<Frame>& frames = stacks_.frames(site.stack);
  const auto program = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
    return frame.file->find("/librocemu") == std::string::npos;
  });
  return std::span(stacks_.addresses(site.stack))
      .subspan(static_cast<size_t>(program - frames.begin()));
}

void BufferMarks::on(const Post& event) {
  Queue& queue = event.queue;
  for (uint64_t number = event.begin; number != event.end; ++number) {
    Request& request = queue.requests.at(number);
    request.memory.clear();
    if (!request.is_inline) locate(event.objects, request);
    const bool writes = is_written(queue, request);
    if (poisoned_ && writes)
      for (const MemoryRange& range : request.memory)
        if (range.address != 0) poisoned_->hold(range);
    if (threads_) threads_->post(queue, request, writes, stack_of(event.site));
  }
  if (!threads_ || queue.kind != QueueKind::kSend || event.begin == event.end) return;
  threads_->send_message(queue.number);
  threads_->change_remote_memory();
}

/// Ends the request: the program may access the buffers again.
void BufferMarks::end(Request& request) {
  if (poisoned_)
    for (const MemoryRange& range : request.memory)
      if (range.address != 0) poisoned_->release(range);
  if (threads_) threads_->complete(request);
  request.memory.clear();
}

void BufferMarks::on(const PostTakenBack& event) {
  Requests& requests = event.queue.requests;
  for (uint64_t number = event.begin + 1; number <= requests.posted(); ++number)
    end(requests.at(number));
}

void BufferMarks::on(const Completion& event) {
  const bool is_success = event.status == static_cast<uint32_t>(abi::WcStatus::kSuccess);
  Queue& queue = event.queue;
  Requests& requests = queue.requests;
  const auto finish = [&](Request& request, uint64_t length) {
    if (is_success && is_written(queue, request)) mark(request, length);
    end(request);
  };
  // A WRITE with immediate data takes a receive, but writes nothing to its buffers.
  const bool is_message = event.opcode == static_cast<uint32_t>(abi::WcOpcode::kRecv);
  const uint64_t received = is_message ? event.length : 0;
  if (queue.kind == QueueKind::kShared) {
    // Receives with the same wr_id cannot be distinguished, even by the program.
    for (uint64_t number = requests.finished() + 1; number <= requests.posted(); ++number) {
      Request& request = requests.at(number);
      if (!request.is_finished && event.request != nullptr && request.wr_id == event.request->wr_id)
        finish(request, received);
    }
  } else {
    for (uint64_t number = requests.finished() + 1;
         number <= event.last && number <= requests.posted(); ++number)
      finish(requests.at(number), queue.kind == QueueKind::kSend ? UINT64_MAX : received);
  }
  if (!threads_ || !is_success) return;
  if (queue.kind == QueueKind::kSend) return threads_->read_remote_memory();
  const bool is_connected = queue.qp != nullptr && queue.qp->type != abi::QpType::kUd;
  threads_->receive_message(is_connected ? queue.qp->peer : event.source_qp);
}

void BufferMarks::on(const DroppedCompletion& event) {
  if (Request* const request = event.queue.requests.find(event.wr_id)) end(*request);
}

void BufferMarks::end_all(Queue& queue) {
  Requests& requests = queue.requests;
  for (uint64_t number = requests.finished() + 1; number <= requests.posted(); ++number)
    end(requests.at(number));
}

void BufferMarks::end_queue(Queue& queue) {
  end_all(queue);
  if (threads_) threads_->end(queue);
}

void BufferMarks::on(const StateChange& event) {
  if (event.to != abi::QpState::kReset) return;
  end_all(event.qp.sends);
  end_all(event.qp.receives);
}

void BufferMarks::on(const Destruction& event) {
  if (event.object.kind == ObjectKind::kSrq) end_queue(static_cast<Srq&>(event.object).receives);
  if (event.object.kind != ObjectKind::kQp) return;
  auto& qp = static_cast<Qp&>(event.object);
  end_queue(qp.sends);
  end_queue(qp.receives);
}

void BufferMarks::on(const ContextEnd& event) {
  event.objects.qps.for_each([&](Qp& qp) {
    if (qp.context != event.context) return;
    end_queue(qp.sends);
    end_queue(qp.receives);
  });
  event.objects.srqs.for_each([&](Srq& srq) {
    if (srq.context == event.context) end_queue(srq.receives);
  });
}

void forget_marks(uint64_t begin, uint64_t end) {
  if (const auto shadow = address_sanitizer_shadow()) PoisonedMemory::forget(*shadow, begin, end);
}

}  // namespace rocemu::sanitizer
