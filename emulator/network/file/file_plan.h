// The network that a file describes, in the form that the engine takes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/base/simulated_network.h"
#include "emulator/network/network_topology.h"

namespace rocemu::network {

class FilePlan final : public engine::NetworkPlan {
 public:
  /// Creates the plan of `topology`, which `text` describes. Frames that leave one of
  /// `captured_ports` are reported.
  FilePlan(std::string text, Topology topology, std::vector<PortId> captured_ports = {});

  std::unique_ptr<engine::SimulatedNetwork> build(uint64_t seed) const override;
  const std::string& text() const override { return text_; }
  size_t host_count() const override { return topology_.hosts.size(); }
  std::string problem_of(const engine::NetworkElement& element,
                         const engine::NetworkChange& change) const override;
  std::optional<engine::CongestionNotification> notification() const override {
    return notification_;
  }
  const Topology& topology() const { return topology_; }

 private:
  std::string text_;
  Topology topology_;
  std::vector<PortId> captured_ports_;
  std::optional<engine::CongestionNotification> notification_;
};

/// Reads the network of that name, which is a file or a network that comes with rocemu. Appends
/// warnings to `warnings`. Throws NetworkFileError for an invalid file, and std::runtime_error if
/// there is no such file.
std::shared_ptr<const FilePlan> load_plan(const std::string& name,
                                          std::vector<std::string>& warnings);
/// Reads a network from text. `name` is the file's name in messages.
std::shared_ptr<const FilePlan> parse_plan(const std::string& text, const std::string& name,
                                           std::vector<std::string>& warnings);

}  // namespace rocemu::network
