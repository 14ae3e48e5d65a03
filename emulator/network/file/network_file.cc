#include "emulator/network/file/network_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "emulator/network/file/field_reader.h"
#include "emulator/network/file/shape_reader.h"
#include "emulator/os/text_file.h"

namespace rocemu::network {
namespace {

using scenario::Node;
using scenario::NodeReader;
using scenario::SourceLocation;

void read_dcqcn(const FieldReader& reader, const Node& node, NicParameters& nic) {
  if (node.is_scalar() && node.text == "off") return;
  DcqcnParameters& dcqcn = nic.dcqcn.emplace();
  if (node.is_scalar() && (node.text == "default" || node.text == "on")) return;
  if (!node.is_mapping())
    reader.nodes().fail(node, fmt::format("expected default, off or a mapping of parameters, found "
                                          "{}",
                                          NodeReader::found(node)));
  const NodeReader& nodes = reader.nodes();
  const auto interval = [&](engine::Duration& value) {
    return [&](const Node& one) { value = nodes.duration(one); };
  };
  const auto rate = [&](uint64_t& value) {
    return [&](const Node& one) { value = reader.rate(one); };
  };
  reader.fields(node, "dcqcn",
                {{"cnp-interval", interval(dcqcn.cnp_interval)},
                 {"g", [&](const Node& one) { dcqcn.g = nodes.probability(one); }},
                 {"alpha-interval", interval(dcqcn.alpha_interval)},
                 {"increase-interval", interval(dcqcn.increase_interval)},
                 {"byte-counter", [&](const Node& one) { dcqcn.byte_counter = reader.size(one); }},
                 {"fast-recovery-steps",
                  [&](const Node& one) {
                    dcqcn.fast_recovery_steps = static_cast<uint32_t>(nodes.number(one, 0, 1000));
                  }},
                 {"additive-increase", rate(dcqcn.additive_increase_bps)},
                 {"hyper-increase", rate(dcqcn.hyper_increase_bps)},
                 {"minimum-rate", rate(dcqcn.minimum_rate_bps)},
                 {"cnp-dscp", [&](const Node& one) {
                    dcqcn.cnp_dscp = static_cast<uint8_t>(nodes.number(one, 0, kDscpValues - 1));
                  }}});
  if (dcqcn.byte_counter == 0)
    nodes.fail(node, "byte-counter is 0; use several megabytes, such as 10MB");
  if (dcqcn.alpha_interval.count() <= 0 || dcqcn.increase_interval.count() <= 0)
    nodes.fail(node, "the intervals of dcqcn cannot be 0");
}

uint8_t read_priority(const NodeReader& nodes, const Node& node) {
  return static_cast<uint8_t>(nodes.number(node, 0, kPriorities - 1));
}

uint8_t read_priority_bits(const NodeReader& nodes, const Node& node) {
  uint8_t bits = 0;
  if (node.is_list() && node.items.empty()) return bits;
  for (const Node& one : nodes.items(node, "a list of priorities"))
    bits |= static_cast<uint8_t>(1u << read_priority(nodes, one));
  return bits;
}

uint64_t read_key(const NodeReader& nodes, const Node& key, uint64_t most) {
  return nodes.number(key, 0, most);
}

void read_priorities(const FieldReader& reader, const Node& node, PriorityParameters& priorities) {
  const NodeReader& nodes = reader.nodes();
  // The key `default` is read first, wherever it is in the file.
  if (const Node* const value = node.is_mapping() ? node.find("default") : nullptr)
    priorities.of_dscp.fill(read_priority(nodes, *value));
  const auto read_map = [&](const Node& map, auto set, uint64_t most) {
    if (!map.is_mapping())
      nodes.fail(map, fmt::format("expected a mapping, found {}", NodeReader::found(map)));
    for (const scenario::Entry& entry : map.entries)
      nodes.attempt([&] { set(read_key(nodes, entry.key, most), entry.value); });
  };
  reader.fields(
      node, "priorities",
      {{"default", [](const Node&) {}},
       {"dscp",
        [&](const Node& map) {
          read_map(
              map,
              [&](uint64_t dscp, const Node& value) {
                priorities.of_dscp[dscp] = read_priority(nodes, value);
              },
              kDscpValues - 1);
        }},
       {"lossless",
        [&](const Node& list) { priorities.lossless = read_priority_bits(nodes, list); }},
       {"strict", [&](const Node& list) { priorities.strict = read_priority_bits(nodes, list); }},
       {"weights", [&](const Node& map) {
          read_map(
              map,
              [&](uint64_t priority, const Node& value) {
                priorities.weights[priority] = static_cast<uint32_t>(nodes.number(value, 1, 1000));
              },
              kPriorities - 1);
        }}});
}

/// The sections of the file, each null if the file does not have it.
struct Sections {
  const Node* switches = nullptr;
  const Node* links = nullptr;
  const Node* trunks = nullptr;
  const Node* topology = nullptr;
  const Node* overrides = nullptr;
  const Node* routing = nullptr;
  const Node* priorities = nullptr;
  const Node* nics = nullptr;
  const Node* largest_frame = nullptr;
};

class NetworkFileReader {
 public:
  explicit NetworkFileReader(std::vector<scenario::Problem>& problems)
      : nodes_(problems), reader_(nodes_), problems_(problems) {}

  Topology read(const Node& root) {
    const auto into = [](const Node*& section) {
      return [&section](const Node& node) { section = &node; };
    };
    reader_.fields(root, "a network",
                   {{"switch", into(sections_.switches)},
                    {"links", into(sections_.links)},
                    {"trunks", into(sections_.trunks)},
                    {"topology", into(sections_.topology)},
                    {"overrides", into(sections_.overrides)},
                    {"routing", into(sections_.routing)},
                    {"priorities", into(sections_.priorities)},
                    {"nics", into(sections_.nics)},
                    {"largest-frame", into(sections_.largest_frame)}});
    root_location_ = root.location;
    if (sections_.topology == nullptr) {
      nodes_.complain(root, "a network needs a 'topology', such as topology: {star: 16}");
      return {};
    }
    Topology topology = read_nodes();
    read_rest(topology);
    if (problems_.empty()) add_problems(topology);
    return topology;
  }

 private:
  Topology read_nodes() {
    Patterns patterns;
    if (sections_.switches != nullptr) read_switch(reader_, *sections_.switches, patterns.switches);
    if (sections_.links != nullptr) read_link(reader_, *sections_.links, patterns.hosts);
    patterns.trunks = patterns.hosts;
    if (sections_.trunks != nullptr) read_link(reader_, *sections_.trunks, patterns.trunks);
    Topology topology;
    nodes_.attempt([&] { topology = read_shape(reader_, *sections_.topology, patterns, places_); });
    return topology;
  }

  void read_rest(Topology& topology) {
    if (sections_.overrides != nullptr) read_overrides(topology);
    if (sections_.routing != nullptr) {
      nodes_.attempt([&] {
        const std::string text = nodes_.text(*sections_.routing, "shortest or up-down");
        if (text != "shortest" && text != "up-down")
          nodes_.fail(*sections_.routing,
                      fmt::format("expected shortest or up-down, found '{}'", text));
        topology.routing = text == "shortest" ? Routing::kShortest : Routing::kUpDown;
      });
    }
    if (sections_.priorities != nullptr) {
      nodes_.attempt([&] { read_priorities(reader_, *sections_.priorities, topology.priorities); });
    }
    if (sections_.nics != nullptr) {
      reader_.fields(*sections_.nics, "nics",
                     {{"dcqcn", [&](const Node& node) { read_dcqcn(reader_, node, topology.nic); }},
                      {"queue", [&](const Node& node) {
                         topology.nic.queue_bytes = reader_.size(node);
                         if (topology.nic.queue_bytes == 0)
                           nodes_.fail(node, "a queue of 0 bytes accepts no frame");
                       }}});
    }
    if (sections_.largest_frame != nullptr) {
      nodes_.attempt([&] {
        topology.largest_frame_bytes =
            static_cast<uint32_t>(nodes_.number(*sections_.largest_frame, kPfcFrameBytes, 65536));
      });
    }
  }

  void read_overrides(Topology& topology) {
    if (!sections_.overrides->is_mapping()) {
      nodes_.complain(*sections_.overrides,
                      "expected links with their own rate or delay, such as "
                      "{h3-s1: {rate: 10Gbps}}");
      return;
    }
    for (const scenario::Entry& entry : sections_.overrides->entries) {
      nodes_.attempt([&] {
        if (const auto link = find_link(topology, entry.key.text)) {
          places_.links[*link] = entry.key.location;
          return read_link(reader_, entry.value, topology.links[*link]);
        }
        if (const auto id = find_switch(topology, entry.key.text)) {
          places_.switches[*id] = entry.key.location;
          return read_switch(reader_, entry.value, topology.switches[*id].parameters);
        }
        nodes_.fail(entry.key, fmt::format("there is no link or switch '{}'; links are named by "
                                           "their ends or a port, such as h3-s1 or s1:3",
                                           entry.key.text));
      });
    }
  }

  SourceLocation location_in(const Node* section, std::string_view key) const {
    if (section == nullptr) return root_location_;
    const Node* const node = section->find(key);
    return node != nullptr ? node->location : section->location;
  }

  SourceLocation location_of(const TopologyProblem& problem) const {
    using Subject = TopologyProblem::Subject;
    const auto in_switch = [&](std::string_view key) {
      const auto listed = places_.switches.find(problem.index);
      return listed != places_.switches.end() ? listed->second
                                              : location_in(sections_.switches, key);
    };
    switch (problem.subject) {
      case Subject::kBuffer:
        return in_switch("buffer");
      case Subject::kEcn:
        return in_switch("ecn");
      case Subject::kPfc:
      case Subject::kHeadroom:
        return in_switch("pfc");
      case Subject::kLink: {
        const auto listed = places_.links.find(problem.index);
        return listed != places_.links.end() ? listed->second
                                             : location_in(sections_.links, "rate");
      }
      case Subject::kPriority:
        return sections_.priorities != nullptr ? sections_.priorities->location : root_location_;
      case Subject::kTopology:
      case Subject::kNode:
        break;
    }
    return sections_.topology->location;
  }

  void add_problems(const Topology& topology) {
    for (TopologyProblem& problem : check(topology)) {
      if (problems_.size() >= scenario::kMaxProblems) return;
      problems_.push_back({location_of(problem), std::move(problem.message), problem.is_warning});
    }
  }

  NodeReader nodes_;
  FieldReader reader_;
  std::vector<scenario::Problem>& problems_;
  Sections sections_;
  ListedPlaces places_;
  SourceLocation root_location_;
};

}  // namespace

std::string find_network_file(const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || std::filesystem::exists(name, ignored)) return name;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path installed =
      self.parent_path() / ".." / ROCEMU_TOPOLOGY_DIR / (name + ".yaml");
  return std::filesystem::is_regular_file(installed, ignored) ? installed.string() : name;
}

std::string read_network(const std::string& name, bool is_read_again) {
  const std::string path = find_network_file(name);
  std::error_code ignored;
  std::string text;
  if (std::filesystem::exists(path, ignored))
    text = read_text_file(
        path, {.noun = "network", .most_bytes = kMaxNetworkText, .is_read_again = is_read_again});
  if (text.empty())
    throw std::runtime_error("cannot read the network '" + name +
                             "'; give a YAML file, or star-16, leaf-spine-64 or fat-tree-1024");
  return text;
}

bool is_network_file(std::string_view yaml) {
  std::vector<scenario::Problem> problems;
  const Node root = scenario::parse_document(yaml, problems);
  return root.is_mapping() && root.find("topology") != nullptr && root.find("rules") == nullptr;
}

NetworkFile parse_network_file(const std::string& yaml, const std::string& name) {
  std::vector<scenario::Problem> problems;
  const Node root = scenario::parse_document(yaml, problems);
  NetworkFile file;
  if (problems.empty()) {
    try {
      file.topology = NetworkFileReader(problems).read(root);
    } catch (const NodeReader::TooManyProblems&) {
    } catch (const NodeReader::AlreadyTold&) {
    }
  }
  std::string mistakes;
  for (const scenario::Problem& problem : problems) {
    const std::string text = scenario::describe(problem, name, yaml);
    if (problem.is_warning) {
      file.warnings.push_back(text);
    } else {
      mistakes += (mistakes.empty() ? "" : "\n") + text;
    }
  }
  if (!mistakes.empty()) throw NetworkFileError(mistakes, std::move(problems));
  return file;
}

}  // namespace rocemu::network
