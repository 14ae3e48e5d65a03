#include "emulator/network/file/file_plan.h"

#include <utility>

#include "emulator/network/file/network_file.h"
#include "emulator/network/programs/fault_targets.h"
#include "emulator/network/programs/program_network.h"

namespace rocemu::network {

FilePlan::FilePlan(std::string text, Topology topology, std::vector<PortId> captured_ports)
    : text_(std::move(text)),
      topology_(std::move(topology)),
      captured_ports_(std::move(captured_ports)) {
  if (const auto& dcqcn = topology_.nic.dcqcn)
    notification_ =
        engine::CongestionNotification{.interval = dcqcn->cnp_interval, .dscp = dcqcn->cnp_dscp};
}

std::unique_ptr<engine::SimulatedNetwork> FilePlan::build(uint64_t seed) const {
  return std::make_unique<ProgramNetwork>(topology_, seed, captured_ports_);
}

std::string FilePlan::problem_of(const engine::NetworkElement& element,
                                 const engine::NetworkChange& change) const {
  return network::problem_of(topology_, element, change);
}

std::shared_ptr<const FilePlan> parse_plan(const std::string& text, const std::string& name,
                                           std::vector<std::string>& warnings) {
  NetworkFile file = parse_network_file(text, name);
  warnings.insert(warnings.end(), file.warnings.begin(), file.warnings.end());
  return std::make_shared<FilePlan>(text, std::move(file.topology));
}

std::shared_ptr<const FilePlan> load_plan(const std::string& name,
                                          std::vector<std::string>& warnings) {
  return parse_plan(read_network(name, /*is_read_again=*/true), name, warnings);
}

}  // namespace rocemu::network
