// Finds errors in a topology.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "emulator/network/buffer_cycles.h"
#include "emulator/network/network_topology.h"

namespace rocemu::network {
namespace {

using Subject = TopologyProblem::Subject;

constexpr uint64_t kMostBps = 10'000'000'000'000;
constexpr size_t kMostPorts = 1u << 20;

class TopologyCheck {
 public:
  explicit TopologyCheck(const Topology& topology) : topology_(topology) {}

  std::vector<TopologyProblem> run() {
    check_nodes();
    check_links();
    check_priorities();
    if (problems_.empty()) check_connections();
    if (problems_.empty()) {
      ports_ = ports_of(topology_);
      for (SwitchId i = 0; i < topology_.switches.size(); ++i) check_switch(i);
    }
    const bool has_errors =
        std::ranges::any_of(problems_, [](const auto& problem) { return !problem.is_warning; });
    if (!has_errors) check_loops();
    return std::move(problems_);
  }

 private:
  void fail(Subject subject, uint32_t index, std::string message) {
    problems_.push_back({subject, index, std::move(message), false});
  }
  /// Reports an error, unless the same message was already reported: in most files, all switches
  /// have the same parameters.
  void fail_once(Subject subject, uint32_t index, std::string message) {
    if (said_.insert(message).second) fail(subject, index, std::move(message));
  }
  void warn_once(Subject subject, uint32_t index, std::string message) {
    if (said_.insert(message).second)
      problems_.push_back({subject, index, std::move(message), true});
  }

  std::string name(NodeRef node) const {
    return node.is_switch ? topology_.switches[node.index].name : topology_.hosts[node.index].name;
  }

  void check_nodes() {
    if (topology_.hosts.size() < 2)
      fail(Subject::kTopology, 0,
           fmt::format("a network needs at least two hosts, but this one has {}",
                       topology_.hosts.size()));
    if (topology_.hosts.size() + 2 * topology_.links.size() > kMostPorts)
      fail(Subject::kTopology, 0, fmt::format("at most {} ports are possible", kMostPorts));
    std::set<std::string> names;
    const auto check_name = [&](const std::string& text) {
      if (text.empty() || text.find_first_of("-: ") != std::string::npos)
        fail(Subject::kNode, 0,
             fmt::format("'{}' is not a valid name of a node; use letters, digits and dots", text));
      if (!names.insert(text).second)
        fail(Subject::kNode, 0, fmt::format("two nodes are named '{}'; rename one", text));
    };
    for (const Host& host : topology_.hosts) check_name(host.name);
    for (const Switch& one : topology_.switches) check_name(one.name);
  }

  void check_links() {
    std::vector<uint32_t> links_of(topology_.hosts.size(), 0);
    for (LinkId i = 0; i < topology_.links.size(); ++i) {
      const Link& link = topology_.links[i];
      const auto exists = [&](NodeRef node) {
        return node.index < (node.is_switch ? topology_.switches.size() : topology_.hosts.size());
      };
      if (!exists(link.a) || !exists(link.b)) {
        fail(Subject::kLink, i, "the link leads to a node that does not exist");
        continue;
      }
      if (link.a == link.b)
        fail(Subject::kLink, i, fmt::format("the link connects {} to itself", name(link.a)));
      if (link.rate_bps == 0 || link.rate_bps > kMostBps) {
        fail(Subject::kLink, i,
             fmt::format("the link {}-{} has a rate of {} bit/s; use 1bit/s to 10000Gbit/s",
                         name(link.a), name(link.b), link.rate_bps));
      }
      if (link.delay < Duration(0) || link.delay > std::chrono::seconds(10))
        fail(Subject::kLink, i,
             fmt::format("the link {}-{} has a delay outside of 0 to 10s", name(link.a),
                         name(link.b)));
      for (const NodeRef& end : {link.a, link.b})
        if (!end.is_switch) ++links_of[end.index];
    }
    for (HostId i = 0; i < links_of.size(); ++i) {
      if (links_of[i] == 1) continue;
      fail(
          Subject::kNode, i,
          links_of[i] == 0
              ? fmt::format("host {} has no link; connect it to a switch", topology_.hosts[i].name)
              : fmt::format("host {} has {} links, but a host has one port; connect each link to a "
                            "separate host",
                            topology_.hosts[i].name, links_of[i]));
    }
  }

  void check_priorities() {
    for (size_t dscp = 0; dscp < kDscpValues; ++dscp) {
      if (topology_.priorities.of_dscp[dscp] >= kPriorities)
        fail(Subject::kPriority, 0, fmt::format("DSCP {} has a priority above 7", dscp));
    }
    if (std::ranges::count(topology_.priorities.weights, 0u) > 0)
      fail(Subject::kPriority, 0,
           "a priority has weight 0, so its frames would never be sent; use 1 or more");
  }

  void check_connections() {
    std::vector<std::vector<NodeRef>> of_hosts(topology_.hosts.size());
    std::vector<std::vector<NodeRef>> of_switches(topology_.switches.size());
    const auto neighbors = [&](NodeRef node) -> std::vector<NodeRef>& {
      return node.is_switch ? of_switches[node.index] : of_hosts[node.index];
    };
    for (const Link& link : topology_.links) {
      neighbors(link.a).push_back(link.b);
      neighbors(link.b).push_back(link.a);
    }
    std::vector<bool> host_reached(topology_.hosts.size()), switch_reached(of_switches.size());
    std::vector<NodeRef> reached = {{false, 0}};
    host_reached[0] = true;
    for (size_t i = 0; i < reached.size(); ++i) {
      const std::vector<NodeRef> next = neighbors(reached[i]);
      for (const NodeRef& node : next) {
        auto&& seen = node.is_switch ? switch_reached[node.index] : host_reached[node.index];
        if (!seen) reached.push_back(node);
        seen = true;
      }
    }
    for (HostId i = 0; i < host_reached.size(); ++i) {
      if (host_reached[i]) continue;
      fail(Subject::kNode, i,
           fmt::format("there is no path from host {} to host {}; connect their switches by a link",
                       topology_.hosts[0].name, topology_.hosts[i].name));
      return;
    }
  }

  void check_ecn(SwitchId id, const SwitchParameters& at) {
    if (at.ecn->kmin_bytes > at.ecn->kmax_bytes) {
      fail_once(Subject::kEcn, id,
                fmt::format("kmin ({} bytes) is above kmax ({} bytes)", at.ecn->kmin_bytes,
                            at.ecn->kmax_bytes));
    }
    if (!(at.ecn->pmax >= 0 && at.ecn->pmax <= 1))
      fail_once(Subject::kEcn, id, "pmax must be a probability from 0 to 1");
    if (at.ecn->kmax_bytes > at.buffer_bytes) {
      fail_once(Subject::kEcn, id,
                fmt::format("kmax ({} bytes) is more than the buffer ({} bytes), so no queue "
                            "reaches it; lower kmax or enlarge the buffer",
                            at.ecn->kmax_bytes, at.buffer_bytes));
    }
    if (at.pfc && at.ecn->kmin_bytes >= at.pfc->xoff_bytes) {
      warn_once(
          Subject::kEcn, id,
          fmt::format("PFC pauses at {} bytes, before ECN marks at {}: senders never learn of "
                      "congestion; lower kmin or raise xoff",
                      at.pfc->xoff_bytes, at.ecn->kmin_bytes));
    }
  }

  void check_pfc(SwitchId id, const SwitchParameters& at) {
    const PfcThresholds& pfc = *at.pfc;
    if (pfc.xon_bytes > pfc.xoff_bytes) {
      fail_once(
          Subject::kPfc, id,
          fmt::format("xon ({} bytes) is above xoff ({} bytes)", pfc.xon_bytes, pfc.xoff_bytes));
    }
    if (pfc.xoff_bytes == 0)
      fail_once(Subject::kPfc, id,
                "xoff is 0, which pauses forever; use the size of several frames");
    if (topology_.priorities.lossless == 0) {
      warn_once(Subject::kPfc, id,
                "no priority is lossless, so PFC does nothing; name lossless priorities, such "
                "as priorities: {lossless: [3]}");
    }
    uint64_t reserved = 0;
    uint64_t largest = 0;
    const auto count = static_cast<uint64_t>(std::popcount(topology_.priorities.lossless));
    for (const PortInfo& port : ports_) {
      if (port.node != NodeRef{true, id}) continue;
      const Link& link = topology_.links[port.link];
      const uint64_t needed = needed_headroom(link, topology_.largest_frame_bytes);
      const uint64_t headroom = pfc.headroom_bytes != 0 ? pfc.headroom_bytes : needed;
      reserved += headroom * count;
      largest = std::max(largest, headroom);
      if (headroom < needed) {
        warn_once(Subject::kHeadroom, id,
                  fmt::format("a headroom of {} bytes is too small for a link of {:g} Gbit/s and "
                              "{} ns: PFC may lose frames; it needs {} bytes",
                              headroom, static_cast<double>(link.rate_bps) / 1e9,
                              link.delay.count(), needed));
      }
    }
    if (reserved >= at.buffer_bytes) {
      fail_once(
          Subject::kBuffer, id,
          fmt::format("the headroom of all ports is {} bytes, but the buffer of {} has only {}: "
                      "no room is left; enlarge the buffer or use fewer lossless priorities",
                      reserved, topology_.switches[id].name, at.buffer_bytes));
    } else if (pfc.xoff_bytes > at.buffer_bytes - reserved) {
      fail_once(
          Subject::kPfc, id,
          fmt::format("xoff ({} bytes) cannot be reached: besides the headroom of all ports, "
                      "the buffer of {} has {} bytes; lower xoff or enlarge the buffer",
                      pfc.xoff_bytes, topology_.switches[id].name, at.buffer_bytes - reserved));
    }
  }

  void check_switch(SwitchId id) {
    const SwitchParameters& at = topology_.switches[id].parameters;
    if (at.buffer_bytes < topology_.largest_frame_bytes) {
      fail_once(Subject::kBuffer, id,
                fmt::format("a buffer of {} bytes has no room for a frame of {} bytes",
                            at.buffer_bytes, topology_.largest_frame_bytes));
      return;
    }
    if (at.ecn) check_ecn(id, at);
    if (at.pfc) check_pfc(id, at);
    if (!at.ecn && topology_.nic.dcqcn) {
      warn_once(
          Subject::kEcn, id,
          "NICs have DCQCN, but no switch marks frames; add ecn: {kmin: 100KiB, kmax: 400KiB, "
          "pmax: 0.2} to the switch");
    }
  }

  void check_loops() {
    const bool has_pfc = std::ranges::any_of(
        topology_.switches, [](const Switch& one) { return one.parameters.pfc.has_value(); });
    if (!has_pfc) return;
    const std::vector<PortId> cycle = find_buffer_cycle(topology_);
    if (cycle.empty()) return;
    std::string path;
    for (const PortId port : cycle)
      path += (path.empty() ? "" : ", ") + port_name(topology_, ports_[port]);
    warn_once(Subject::kTopology, 0,
              fmt::format("the ports {} can wait for each other: PFC may deadlock; use "
                          "routing: up-down",
                          path));
  }

  const Topology& topology_;
  std::vector<PortInfo> ports_;
  std::vector<TopologyProblem> problems_;
  std::set<std::string> said_;
};

}  // namespace

std::vector<TopologyProblem> check(const Topology& topology) {
  return TopologyCheck(topology).run();
}

}  // namespace rocemu::network
