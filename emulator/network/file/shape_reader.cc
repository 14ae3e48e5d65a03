#include "emulator/network/file/shape_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::network {
namespace {

using scenario::Node;
using scenario::NodeReader;

constexpr uint64_t kMostHosts = 65536;
constexpr uint64_t kMostSwitches = 8192;
constexpr uint64_t kMostArity = 64;  // of a fat-tree: 65,536 hosts

uint32_t count(const FieldReader& reader, const Node& node, uint64_t least, uint64_t most) {
  return static_cast<uint32_t>(reader.nodes().number(node, least, most));
}

/// Reads the numbers that describe a shape, such as the number of leaves and of spines. All numbers
/// are required.
class Counts {
 public:
  Counts(const FieldReader& reader, const Node& shape, std::string_view what,
         std::initializer_list<std::string_view> keys) {
    if (!shape.is_mapping())
      reader.nodes().fail(shape, fmt::format("expected a mapping, such as {}: {{{}: 4, ...}}", what,
                                             *keys.begin()));
    for (const scenario::Entry& entry : shape.entries) {
      if (std::ranges::find(keys, entry.key.text) == keys.end())
        reader.nodes().fail(entry.key, fmt::format("{} has no '{}'", what, entry.key.text));
    }
    for (const std::string_view key : keys) {
      const Node* const value = shape.find(key);
      if (value == nullptr) reader.nodes().fail(shape, fmt::format("{} needs '{}'", what, key));
      numbers_.push_back(count(reader, *value, 1, kMostSwitches));
    }
    uint64_t product = 1;
    for (const uint32_t number : numbers_) product *= number;
    if (product > kMostHosts * 16)
      reader.nodes().fail(shape,
                          fmt::format("this {} has more than {} hosts or links", what, kMostHosts));
  }
  uint32_t operator[](size_t i) const { return numbers_[i]; }

 private:
  std::vector<uint32_t> numbers_;
};

class ListReader {
 public:
  ListReader(const FieldReader& reader, const Patterns& patterns, ListedPlaces& places)
      : reader_(reader), patterns_(patterns), places_(places) {}

  Topology read(const Node& node) {
    const Node* links = nullptr;
    reader_.fields(node, "a topology",
                   {{"hosts", [&](const Node& hosts) { read_hosts(hosts); }},
                    {"switches", [&](const Node& switches) { read_switches(switches); }},
                    {"links", [&](const Node& value) { links = &value; }}});
    if (links == nullptr)
      reader_.nodes().fail(node, "a list of nodes needs 'links', such as [[h0, s1]]");
    for (const Node& link : reader_.nodes().items(*links, "a list of links"))
      reader_.nodes().attempt([&] { read_one_link(link); });
    return std::move(topology_);
  }

 private:
  void read_hosts(const Node& hosts) {
    if (hosts.is_scalar()) {  // the number of hosts
      const uint32_t number = count(reader_, hosts, 1, kMostHosts);
      for (uint32_t i = 0; i < number; ++i) topology_.hosts.push_back({"h" + std::to_string(i)});
      return;
    }
    for (const Node& host : reader_.nodes().items(hosts, "a list of names"))
      topology_.hosts.push_back({reader_.nodes().text(host, "the name of a host")});
  }

  void read_switches(const Node& switches) {
    for (const Node& one : reader_.nodes().items(switches, "a list of names")) {
      Switch added{"", patterns_.switches};
      if (one.is_mapping()) {
        const Node* const name = one.find("name");
        if (name == nullptr) reader_.nodes().fail(one, "this switch needs a 'name'");
        added.name = reader_.nodes().text(*name, "the name of a switch");
        read_switch(reader_, one, added.parameters);
      } else {
        added.name = reader_.nodes().text(one, "the name of a switch");
      }
      places_.switches[static_cast<SwitchId>(topology_.switches.size())] = one.location;
      topology_.switches.push_back(std::move(added));
    }
  }

  NodeRef node_of(const Node& name) const {
    const std::string text = reader_.nodes().text(name, "the name of a host or switch");
    if (const auto host = find_host(topology_, text)) return {false, *host};
    if (const auto found = find_switch(topology_, text)) return {true, *found};
    reader_.nodes().fail(name, fmt::format("there is no host or switch '{}'", text));
  }

  void read_one_link(const Node& node) {
    const Node* ends = &node;
    if (node.is_mapping()) {
      ends = node.find("between");
      if (ends == nullptr) reader_.nodes().fail(node, "a link needs 'between', such as [h0, s1]");
    }
    if (!ends->is_list() || ends->items.size() != 2)
      reader_.nodes().fail(*ends, "expected two names, such as [h0, s1]");
    const NodeRef a = node_of(ends->items[0]);
    const NodeRef b = node_of(ends->items[1]);
    Link link = a.is_switch && b.is_switch ? patterns_.trunks : patterns_.hosts;
    link.a = a;
    link.b = b;
    if (node.is_mapping()) read_link(reader_, node, link);
    places_.links[static_cast<LinkId>(topology_.links.size())] = node.location;
    topology_.links.push_back(link);
  }

  const FieldReader& reader_;
  const Patterns& patterns_;
  ListedPlaces& places_;
  Topology topology_;
};

}  // namespace

void read_link(const FieldReader& reader, const Node& node, Link& link) {
  reader.fields(node, "a link",
                {{"between", [](const Node&) {}},
                 {"rate", [&](const Node& value) { link.rate_bps = reader.rate(value); }},
                 {"delay", [&](const Node& value) { link.delay = reader.delay(value); }}});
}

void read_switch(const FieldReader& reader, const Node& node, SwitchParameters& at) {
  const NodeReader& nodes = reader.nodes();
  const auto is_off = [&](const Node& value) { return value.is_scalar() && value.text == "off"; };
  const auto read_ecn = [&](const Node& value) {
    at.ecn.reset();
    if (is_off(value)) return;
    EcnThresholds& ecn = at.ecn.emplace();
    for (const std::string_view key : {"kmin", "kmax", "pmax"}) {
      if (value.is_mapping() && value.find(key) == nullptr)
        nodes.fail(value, fmt::format("ecn needs '{}', as in ecn: {{kmin: 100KiB, kmax: 400KiB, "
                                      "pmax: 0.2}}",
                                      key));
    }
    reader.fields(value, "ecn",
                  {{"kmin", [&](const Node& one) { ecn.kmin_bytes = reader.size(one); }},
                   {"kmax", [&](const Node& one) { ecn.kmax_bytes = reader.size(one); }},
                   {"pmax", [&](const Node& one) { ecn.pmax = nodes.probability(one); }}});
  };
  const auto read_pfc = [&](const Node& value) {
    at.pfc.reset();
    if (is_off(value)) return;
    PfcThresholds& pfc = at.pfc.emplace();
    bool has_xon = false;
    if (value.is_mapping() && value.find("xoff") == nullptr)
      nodes.fail(value, "pfc needs 'xoff', as in pfc: {xoff: 512KiB, xon: 384KiB}");
    reader.fields(
        value, "pfc",
        {{"xoff", [&](const Node& one) { pfc.xoff_bytes = reader.size(one); }},
         {"xon",
          [&](const Node& one) {
            pfc.xon_bytes = reader.size(one);
            has_xon = true;
          }},
         {"headroom", [&](const Node& one) {
            pfc.headroom_bytes = reader.size(one);
            if (pfc.headroom_bytes == 0)
              nodes.fail(
                  one,
                  "a headroom of 0 loses frames; leave 'headroom' out, so that rocemu computes it");
          }}});
    if (!has_xon) pfc.xon_bytes = pfc.xoff_bytes / 4 * 3;
  };
  reader.fields(
      node, "a switch",
      {{"name", [](const Node&) {}},
       {"buffer", [&](const Node& value) { at.buffer_bytes = reader.size(value); }},
       {"ecn", read_ecn},
       {"pfc", read_pfc},
       {"queue", [&](const Node& value) { at.queue_limit_bytes = reader.size(value); }},
       {"decrement-ttl", [&](const Node& value) { at.decrements_ttl = nodes.boolean(value); }}});
}

Topology read_shape(const FieldReader& reader, const Node& node, const Patterns& patterns,
                    ListedPlaces& places) {
  const NodeReader& nodes = reader.nodes();
  if (!node.is_mapping() || node.entries.empty())
    nodes.fail(node,
               "expected a topology such as {star: 16}, or a list of hosts, switches and links");
  if (node.find("links") != nullptr || node.find("hosts") != nullptr)
    return ListReader(reader, patterns, places).read(node);
  const scenario::Entry& shape = node.entries[0];
  if (node.entries.size() > 1)
    nodes.fail(node.entries[1].key,
               fmt::format("a topology has one shape, but this one has both '{}' and '{}'",
                           node.entries[1].key.text, shape.key.text));
  const std::string& name = shape.key.text;
  const Node& value = shape.value;
  if (name == "star") return star(count(reader, value, 2, kMostHosts), patterns);
  if (name == "fat-tree") {
    const uint32_t k = count(reader, value, 2, kMostArity);
    if (k % 2 != 0)
      nodes.fail(value, fmt::format("a fat-tree has an even number of ports at each switch; {} is "
                                    "odd",
                                    k));
    return fat_tree(k, patterns);
  }
  if (name == "dumbbell") {
    const Counts counts(reader, value, name, {"left", "right"});
    return dumbbell(counts[0], counts[1], patterns);
  }
  if (name == "leaf-spine") {
    const Counts counts(reader, value, name, {"leaves", "spines", "hosts"});
    return leaf_spine(counts[0], counts[1], counts[2], patterns);
  }
  if (name == "ring") {
    const Counts counts(reader, value, name, {"switches", "hosts"});
    if (counts[0] < 3) nodes.fail(value, "a ring has at least three switches");
    return ring(counts[0], counts[1], patterns);
  }
  constexpr std::string_view kShapes[] = {"star", "dumbbell", "leaf-spine", "fat-tree", "ring"};
  const std::string near = NodeReader::suggestion(name, kShapes);
  nodes.fail(shape.key, fmt::format("there is no topology '{}'{}", name,
                                    near.empty() ? "; use " + scenario::listing(kShapes) +
                                                       ", or hosts, switches and links"
                                                 : near));
}

}  // namespace rocemu::network
