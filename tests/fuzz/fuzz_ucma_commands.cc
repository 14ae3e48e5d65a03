// Fuzzes the commands of librdmacm, as programs might write them, on two event channels of one
// fabric. The input is a sequence of records:
//   0x00..0x7f   a command (the number modulo kNumbers, so that some do not exist); a byte for its
//                size, a byte of Flags, and its bytes
//   0x80..0xff   time advances to the next deadline; with bit 0 the first device is removed, with
//                bit 1 the second channel is closed and another one opened
// Apart from crashes it checks these properties: a refused command has no response, no response is
// longer than its space, and after the channels are closed, time removes all state.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulator/engine/engine.h"
#include "tests/support/array_memory.h"

using namespace rocemu;
using abi::ucma::Command;
using engine::CmChannelId;

namespace {

constexpr uint8_t kNumbers = abi::ucma::kCommands + 2;

enum Flags : uint8_t {
  kLatestId = 1,  // the command gets the latest id; with kOneBefore, the id before that one
  kSecondChannel = 2,
  kNoRoom = 4,  // there is no space for the response
  kLonger = 8,  // the command has 256 more bytes
  kOneBefore = 16
};

/// Returns the offset of the id in the command.
size_t id_offset(Command command) {
  using namespace abi::ucma;
  switch (command) {
    case Command::kCreateId:
      return sizeof(CreateId);  // it has none
    case Command::kDestroyId:
    case Command::kLeaveMcast:
      return offsetof(DestroyId, id);
    case Command::kBindIp:
      return offsetof(BindIp, id);
    case Command::kResolveIp:
      return offsetof(ResolveIp, id);
    case Command::kQuery:
    case Command::kQueryRoute:
      return offsetof(Query, id);
    case Command::kConnect:
      return offsetof(Connect, id);
    case Command::kAccept:
      return offsetof(Accept, id);
    case Command::kInitQpAttr:
      return offsetof(InitQpAttr, id);
    case Command::kSetOption:
      return offsetof(SetOption, id);
    case Command::kJoinIpMcast:
      return offsetof(JoinIpMcast, id);
    case Command::kJoinMcast:
      return offsetof(JoinMcast, id);
    case Command::kMigrateId:
      return offsetof(MigrateId, id);
    case Command::kResolveRoute:
    case Command::kListen:
    case Command::kReject:
    case Command::kDisconnect:
    case Command::kNotify:
    case Command::kBind:
    case Command::kResolveAddr:
    case Command::kGetEvent:
    case Command::kGetOption:
    case Command::kResolveIbService:
    case Command::kWriteCmEvent:
      return 0;
  }
  return 0;
}

class Machine {
 public:
  Machine() : engine_(engine::default_fabric(2), memory_) {
    open(first_);
    open(second_);
  }

  void command(uint8_t number, std::vector<std::byte> bytes, uint8_t flags) {
    const auto command = static_cast<Command>(number % kNumbers);
    const size_t at = id_offset(command);
    const uint32_t id = latest_ - ((flags & kOneBefore) != 0 ? 1 : 0);
    if ((flags & kLatestId) != 0 && at + sizeof id <= bytes.size()) {
      std::memcpy(bytes.data() + at, &id, sizeof id);
    }
    const uint32_t room = (flags & kNoRoom) != 0 ? 0 : abi::ucma::kMaxResponse;
    const CmChannelId channel = (flags & kSecondChannel) != 0 ? second_ : first_;
    step(engine::CmCommand{channel, command, bytes, room});
    const engine::CmReply& reply = reply_;
    if (reply.response.size() > room || (reply.error != 0 && !reply.response.empty())) std::abort();
    if (reply.error < 0) std::abort();
    if (command == Command::kCreateId && reply.response.size() == sizeof latest_) {
      std::memcpy(&latest_, reply.response.data(), sizeof latest_);
    }
  }

  void let_time_pass() {
    if (const auto next = engine_.next_deadline()) now_ = std::max(now_, *next);
    step(engine::Tick{});
  }
  void remove_device() { step(engine::RemoveDevice{engine::DeviceIndex{0}}); }
  void reopen() {
    step(engine::CloseCmChannel{second_});
    second_.value += 2;
    open(second_);
  }

  void end() {
    step(engine::CloseCmChannel{first_});
    step(engine::CloseCmChannel{second_});
    while (engine_.next_deadline()) let_time_pass();
    if (!engine_.snapshot().listeners.empty()) std::abort();
  }

 private:
  void open(CmChannelId channel) { step(engine::OpenCmChannel{channel}); }

  void step(const engine::Input& input) {
    outputs_.clear();
    engine_.step(now_, input, outputs_);
    reply_ = outputs_.cm_reply.value_or(engine::CmReply{});
    for (const engine::Output& output : outputs_.list) {
      const auto* event = std::get_if<engine::CmEvent>(&output);
      if (event == nullptr) continue;
      // As a program does, continues with the id of the connect request.
      if (event->event->event == abi::ucma::EventType::kConnectRequest) latest_ = event->event->id;
    }
  }

  test::ArrayMemory memory_;
  engine::Engine engine_;
  engine::Outputs outputs_;
  engine::CmReply reply_;
  engine::Instant now_{};
  CmChannelId first_{1}, second_{2};
  uint32_t latest_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Machine machine;
  for (size_t at = 0; at < size;) {
    const uint8_t record = data[at++];
    if (record >= 0x80) {
      if ((record & 1) != 0) machine.remove_device();
      if ((record & 2) != 0) machine.reopen();
      machine.let_time_pass();
      continue;
    }
    if (size - at < 2) break;
    const uint8_t flags = data[at + 1];
    const size_t said = data[at] + ((flags & kLonger) != 0 ? size_t{256} : 0);
    const size_t length = std::min(said, size - at - 2);
    at += 2;
    const auto bytes = std::as_bytes(std::span(data + at, length));
    machine.command(record, {bytes.begin(), bytes.end()}, flags);
    at += length;
  }
  machine.end();
  return 0;
}
