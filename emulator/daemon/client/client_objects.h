// Executes requests that need more than the engine's reply, because they create objects with memory
// that client and daemon share, or remove the events of destroyed objects.
#pragma once

#include <span>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/client/client_events.h"
#include "emulator/daemon/client/client_queues.h"

namespace rocemu::daemon {

struct Answer {
  abi::Reply reply{};
  std::vector<UniqueFd> fds{};      // sent with the reply
  const char* violation = nullptr;  // a violation of the protocol: end the client
};

inline Answer refusal(int error) {
  Answer answer;
  answer.reply.error = error;
  return answer;
}

class ClientObjects {
 public:
  ClientObjects(EnginePort& engine, ClientEvents& events, ClientQueues& queues)
      : engine_(engine), events_(events), queues_(queues) {}

  /// Executes any request of an attached client; `fds` are the descriptors of the request. The
  /// answer has no meaning if the engine ended the client during the request (ClientQueues::ended).
  Answer execute(const abi::Request& request, std::span<const UniqueFd> fds);

 private:
  Answer open_segment(const abi::Request& request);
  Answer create_channel(const abi::Request& request);
  Answer create_cq(const abi::Request& request);
  Answer resize_cq(const abi::Request& request);
  Answer create_srq(const abi::Request& request);
  Answer create_qp(const abi::Request& request);
  Answer open_qp(const abi::Request& request);
  Answer destroy_cq(const abi::Request& request, std::span<const UniqueFd> fds);
  Answer destroy_srq(const abi::Request& request, std::span<const UniqueFd> fds);
  Answer destroy_qp(const abi::Request& request, std::span<const UniqueFd> fds);
  Answer carry_out(const abi::Request& request, std::span<const UniqueFd> fds);
  abi::Reply command(const abi::Request& request) {
    const abi::Reply reply = engine_.command(queues_.id, request);
    recorded_error_ = reply.error;
    return reply;
  }
  /// Completes the creation of an object, to which the engine replied with `reply`: allocates
  /// `size` bytes of memory for it, and calls `enter(memory)`, which records the object. If memory
  /// is exhausted, destroys the object again and refuses the request.
  template <class Enter>
  Answer complete(const abi::Reply& reply, abi::Op destroy, uint32_t handle, uint64_t size,
                  Enter enter);
  /// Makes the engine destroy an object that was just created, but cannot be used.
  void undo(abi::Op destroy, uint32_t handle);

  EnginePort& engine_;
  ClientEvents& events_;
  ClientQueues& queues_;
  int32_t recorded_error_ = 0;  // of the latest command that the engine answered
};

}  // namespace rocemu::daemon
