// An engine that does nothing but remember: the inputs as lines, requests answered by a function.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "emulator/daemon/engine_port.h"

namespace rocemu::daemon {

class RecordingEngine : public EnginePort {
 public:
  std::vector<std::string> inputs;
  std::vector<abi::Op> commands;
  std::function<abi::Reply(const abi::Request&)> answer = [](const abi::Request&) {
    return abi::Reply{};
  };
  std::function<void()> on_submit = [] {};

  void submit(const engine::Input& input) override {
    std::visit([this](const auto& one) { record(one); }, input);
    on_submit();
  }
  abi::Reply command(engine::ClientId, const abi::Request& request) override {
    commands.push_back(request.op);
    inputs.push_back("command");
    return answer(request);
  }

 private:
  static std::string text(uint64_t number) { return std::to_string(number); }
  static std::string wr_id(std::span<const std::byte> wqe) {
    uint64_t id;
    std::memcpy(&id, wqe.data(), sizeof id);  // first in both kinds of WQE
    return text(id) + " of " + text(wqe.size()) + " bytes";
  }
  void record(const engine::AttachClient& in) {
    inputs.push_back("attach " + text(in.client.value));
  }
  void record(const engine::DetachClient& in) {
    inputs.push_back("detach " + text(in.client.value));
  }
  void record(const engine::Command&) {}
  void record(const engine::PostSend& in) {
    inputs.push_back("send " + text(in.qp.value) + " wr " + wr_id(in.wqe));
  }
  void record(const engine::PostRecv& in) {
    inputs.push_back("recv " + text(in.qp.value) + " wr " + wr_id(in.wqe));
  }
  void record(const engine::ArmCq& in) {
    inputs.push_back("arm " + text(in.cq.value) + " at " + text(in.producer) +
                     (in.solicited_only ? " solicited" : ""));
  }
  void record(const engine::ReceiveFrame&) {}
  void record(const engine::Tick&) {}
};

}  // namespace rocemu::daemon
