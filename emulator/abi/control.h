// The control protocol: the requests that a client sends to the NIC by message rather than by
// doorbell.
//
// One SOCK_SEQPACKET connection to SOCKET_DIR/dev/infiniband/uverbsN is one ibv_context of device
// N. The client sends one Request, and the daemon answers with one Reply of the same op and
// sequence. Both have a fixed size; a message of any other size is invalid and ends the connection.
// File descriptors are sent with the message (SCM_RIGHTS) as noted for each operation
// (operations.h). These structs are also the engine's input and the contents of a journal. They
// therefore contain no pointers that are dereferenced, and no byte of a Request{} or Reply{} is
// uninitialized: the previous contents of memory must not be visible, and would differ in a replay.
#pragma once

#include <cstdint>

#include "emulator/abi/operations.h"
#include "emulator/abi/rings.h"
#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

inline constexpr uint32_t kMagic = 0x65636f72;  // "roce" in memory on a little-endian machine
/// The version of the protocol. Client and daemon must have the same version; there is no
/// negotiation, since they are built together.
inline constexpr uint32_t kVersion = 10;

struct Request {
  uint32_t magic;
  uint16_t version;
  /// 0, or the errno value with which the client refuses the operation. If it is not 0, the daemon
  /// does not carry out the operation. It only applies the rules of a scenario to the request,
  /// records the refusal and replies with this errno value. It reads no member of the body except
  /// the object's handle.
  uint16_t refusal;
  Op op;
  uint32_t sequence;  // chosen by the client, echoed in the reply
  using Body = RequestBody;
  Body body;
};
static_assert(sizeof(Request) == 16 + 288);

struct Reply {
  uint32_t magic;
  uint32_t version;
  Op op;
  uint32_t sequence;
  int32_t error;  // 0, a positive errno value or kErrnoUntouched; unless it is 0, the body is zero
  uint32_t reserved;
  using Body = ReplyBody;
  Body body;
};
static_assert(sizeof(Reply) == 24 + 320);

/// The bytes that a program reads from an event socket, in the layout in which libibverbs expects
/// events from the kernel.
struct CompletionEventRecord {
  uint64_t cq_user_handle;
};
static_assert(sizeof(CompletionEventRecord) == 8);

struct AsyncEventRecord {
  uint64_t element;  // the object's user handle, or the port number
  uint32_t event_type;
  uint32_t reserved;
};
static_assert(sizeof(AsyncEventRecord) == 16);

}  // namespace rocemu::abi
