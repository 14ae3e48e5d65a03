// Requests that need more than the engine's reply: objects with memory that client and daemon
// share, and the events of destroyed objects.
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

  /// Executes any request of an attached client; `fds` are its descriptors. If the engine ended the
  /// client in the meantime (ClientQueues::ended), the answer has no meaning.
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
  /// Answers the creation of an object with `reply`, once `enter(memory)` has given the object
  /// memory of that size and recorded it. Destroys the object again if memory for either is
  /// exhausted.
  template <class Enter>
  Answer complete(const abi::Reply& reply, abi::Op destroy, uint32_t handle, uint64_t size,
                  Enter enter);
  /// Destroys an object that was just created, but cannot be used.
  void undo(abi::Op destroy, uint32_t handle);

  EnginePort& engine_;
  ClientEvents& events_;
  ClientQueues& queues_;
  int32_t recorded_error_ = 0;  // of the latest command that the engine answered
};

}  // namespace rocemu::daemon
