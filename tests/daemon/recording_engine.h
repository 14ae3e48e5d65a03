// An engine that only records its inputs, as lines. A function that the test sets answers the
// requests.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/daemon/base/engine_port.h"

namespace rocemu::daemon {

class RecordingEngine : public EnginePort {
 public:
  std::vector<std::string> inputs;
  std::vector<abi::Op> commands;
  // calls that were refused before they reached the engine, with their errno values
  std::vector<std::pair<abi::Op, int>> refusals;
  std::function<abi::Reply(const abi::Request&)> answer = [](const abi::Request&) {
    return abi::Reply{};
  };
  std::vector<abi::ucma::Command> cm_commands;
  std::function<engine::CmReply(const engine::CmCommand&)> cm_answer =
      [](const engine::CmCommand&) { return engine::CmReply{}; };
  std::function<void()> on_submit = [] {};
  /// The number of inputs in each batch.
  std::vector<size_t> batches;
  size_t most = 1;  // the most WQEs of one input

  size_t most_wqes() const override { return most; }
  void submit(const engine::Input& input) override {
    std::visit([this](const auto& one) { record(one); }, input);
    on_submit();
  }
  abi::Reply command(engine::ClientId, const abi::Request& request) override {
    if (request.refusal != 0) {
      refusals.emplace_back(request.op, request.refusal);
      abi::Reply reply{};
      reply.error = request.refusal;
      return reply;
    }
    commands.push_back(request.op);
    inputs.push_back("command");
    return answer(request);
  }
  engine::CmReply cm_command(const engine::CmCommand& command) override {
    cm_commands.push_back(command.command);
    return cm_answer(command);
  }

 private:
  void begin_batch() override { batch_begin_ = inputs.size(); }
  void end_batch() override { batches.push_back(inputs.size() - batch_begin_); }
  size_t batch_begin_ = 0;

  static std::string text(uint64_t number) { return std::to_string(number); }
  static std::string wr_id(std::span<const std::byte> wqe) {
    uint64_t id;
    std::memcpy(&id, wqe.data(), sizeof id);  // both kinds of WQE begin with the wr_id
    return text(id) + " of " + text(wqe.size()) + " bytes";
  }
  void record(const engine::AttachClient& in) {
    inputs.push_back("attach " + text(in.client.value) +
                     (in.shares_with ? " shares with " + text(in.shares_with->value) : ""));
  }
  void record(const engine::DetachClient& in) {
    inputs.push_back("detach " + text(in.client.value));
  }
  void record(const engine::Command&) {}
  void record(const engine::PostSend& in) {
    inputs.push_back("send " + text(in.qp.value) + " wr " + wr_id(in.wqes));
  }
  void record(const engine::PostRecv& in) {
    inputs.push_back("recv " + text(in.qp.value) + " wr " + wr_id(in.wqes));
  }
  void record(const engine::PostSrqRecv& in) {
    inputs.push_back("recv of SRQ " + text(in.srq.value) + " wr " + wr_id(in.wqes));
  }
  void record(const engine::ArmCq& in) {
    inputs.push_back("arm " + text(in.cq.value) + " at " + text(in.producer) +
                     (in.solicited_only ? " solicited" : ""));
  }
  void record(const engine::ReceivedFrames&) {}
  void record(const engine::SetPort& in) {
    inputs.push_back("port of " + text(in.device.value) + (in.up ? " up" : " down"));
  }
  void record(const engine::RemoveDevice& in) {
    inputs.push_back("remove device " + text(in.device.value));
  }
  void record(const engine::OpenCmChannel& in) {
    inputs.push_back("open channel " + text(in.channel.value));
  }
  void record(const engine::CloseCmChannel& in) {
    inputs.push_back("close channel " + text(in.channel.value));
  }
  void record(const engine::CmCommand&) {}
  void record(const engine::NameProcess&) {}
  void record(const engine::AddRules&) {}
  void record(const engine::RemoveRules&) {}
  void record(const engine::Pause&) {}
  void record(const engine::ReleaseFrames&) {}
  void record(const engine::MemoryReady&) { inputs.push_back("memory ready"); }
  void record(const engine::Tick&) {}
};

}  // namespace rocemu::daemon
