#include "emulator/command/run/nothing_posted.h"

namespace rocemu::command {

NicUse use_of_nic(const Json& state) {
  NicUse use;
  std::string prepared;
  bool posted = false;
  for (const Json& device : state.at("fabric").at("devices")) {
    const std::string name = device.at("name").get<std::string>();
    posted |= device.at("posted").get<bool>();
    if (device.at("prepared").get<bool>()) prepared += (prepared.empty() ? "" : ", ") + name;
    for (const Json& opcode : device.at("failed_late")) {
      use.late_failures.push_back(
          "profile " + device.at("profile").get<std::string>() + ": " + opcode.get<std::string>() +
          " completed with LOC_QP_OP_ERR on " + name +
          ": the driver accepts it, and the NIC completes it with an error");
    }
  }
  if (!posted && !prepared.empty()) {
    use.nothing_posted = std::string(kNothingPosted) + ": the command created CQs or QPs on " +
                         prepared +
                         " and ended without a work request; it may have used another "
                         "transport, such as TCP (docs/profiles.md)";
  }
  return use;
}

}  // namespace rocemu::command
