#include "emulator/daemon/client/hello.h"

#include <utility>

#include "emulator/daemon/base/unix_socket.h"
#include "emulator/engine/base/limits.h"

namespace rocemu::daemon {

std::optional<HelloFds> sort_hello_fds(std::vector<UniqueFd> fds, bool imports, int own_end) {
  const size_t needed = imports ? 2 : 1;
  if (fds.size() < needed || fds.size() > needed + 1) return std::nullopt;
  HelloFds sorted;
  if (imports) {
    sorted.imported = std::move(fds.back());
    fds.pop_back();
  }
  sorted.client_end = std::move(fds.front());
  if (fds.size() == 2) sorted.mem_file = std::move(fds.back());
  if (!is_client_of_same_listener(sorted.client_end.get(), own_end)) return std::nullopt;
  return sorted;
}

abi::Reply welcome(const ClientQueues& queues, engine::DeviceIndex device,
                   const Arena::SegmentFile& segment, const Clock& clock, bool fills_undefined,
                   const abi::PostRules& posts) {
  abi::Reply reply{};
  auto& hello = reply.body.hello;
  hello.client = queues.id.value;
  hello.device_index = device.value;
  hello.doorbells = queues.doorbell_memory.range();
  hello.doorbells.size = sizeof(abi::DoorbellRing);
  hello.payload = hello.doorbells;
  hello.payload.offset += sizeof(abi::DoorbellRing);
  hello.payload.size = queues.payload() != nullptr ? sizeof(abi::Payload) : 0;
  hello.segment_size = segment.size;
  hello.clock_start_ns = clock.start_ns();
  hello.wall_start_ns = clock.wall_start_ns();
  hello.num_comp_vectors = engine::kCompVectors;
  hello.fills_undefined = fills_undefined ? 1 : 0;
  hello.posts = posts;
  return reply;
}

}  // namespace rocemu::daemon
