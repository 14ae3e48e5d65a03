#include "emulator/network/network_shapes.h"

namespace rocemu::network {
namespace {

std::string numbered(const char* word, uint32_t number) {
  return word + std::to_string(number);
}

std::string numbered(const char* word, uint32_t pod, uint32_t number) {
  return numbered(word, pod) + "." + std::to_string(number);
}

class Builder {
 public:
  explicit Builder(const Patterns& patterns) : patterns_(patterns) {}

  SwitchId add_switch(std::string name) {
    topology_.switches.push_back({std::move(name), patterns_.switches});
    return static_cast<SwitchId>(topology_.switches.size() - 1);
  }
  void add_hosts(uint32_t count, SwitchId at) {
    for (uint32_t i = 0; i < count; ++i) {
      const auto host = static_cast<HostId>(topology_.hosts.size());
      topology_.hosts.push_back({numbered("h", host)});
      add_link(patterns_.hosts, {false, host}, at);
    }
  }
  void add_trunk(SwitchId a, SwitchId b) { add_link(patterns_.trunks, {true, a}, b); }

  Topology take() { return std::move(topology_); }

 private:
  void add_link(Link link, NodeRef a, SwitchId b) {
    link.a = a;
    link.b = {true, b};
    topology_.links.push_back(link);
  }

  const Patterns& patterns_;
  Topology topology_;
};

}  // namespace

Topology star(uint32_t hosts, const Patterns& patterns) {
  Builder builder(patterns);
  builder.add_hosts(hosts, builder.add_switch("s1"));
  return builder.take();
}

Topology dumbbell(uint32_t left, uint32_t right, const Patterns& patterns) {
  Builder builder(patterns);
  const SwitchId first = builder.add_switch("s1");
  const SwitchId second = builder.add_switch("s2");
  builder.add_hosts(left, first);
  builder.add_hosts(right, second);
  builder.add_trunk(first, second);
  return builder.take();
}

Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const Patterns& patterns) {
  Builder builder(patterns);
  for (uint32_t i = 1; i <= leaves; ++i)
    builder.add_hosts(hosts_per_leaf, builder.add_switch(numbered("leaf", i)));
  for (uint32_t i = 1; i <= spines; ++i) {
    const SwitchId spine = builder.add_switch(numbered("spine", i));
    for (SwitchId leaf = 0; leaf < leaves; ++leaf) builder.add_trunk(leaf, spine);
  }
  return builder.take();
}

Topology fat_tree(uint32_t k, const Patterns& patterns) {
  Builder builder(patterns);
  const uint32_t half = k / 2;
  std::vector<SwitchId> aggregation;
  for (uint32_t pod = 1; pod <= k; ++pod) {
    std::vector<SwitchId> edges;
    for (uint32_t i = 1; i <= half; ++i) {
      edges.push_back(builder.add_switch(numbered("edge", pod, i)));
      builder.add_hosts(half, edges.back());
    }
    for (uint32_t i = 1; i <= half; ++i) {
      aggregation.push_back(builder.add_switch(numbered("agg", pod, i)));
      for (const SwitchId edge : edges) builder.add_trunk(edge, aggregation.back());
    }
  }
  // Core switch (i, j) connects the aggregation switches with number i of all pods.
  for (uint32_t i = 0; i < half; ++i) {
    for (uint32_t j = 0; j < half; ++j) {
      const SwitchId core = builder.add_switch(numbered("core", i * half + j + 1));
      for (uint32_t pod = 0; pod < k; ++pod) builder.add_trunk(aggregation[pod * half + i], core);
    }
  }
  return builder.take();
}

Topology ring(uint32_t switches, uint32_t hosts_per_switch, const Patterns& patterns) {
  Builder builder(patterns);
  for (uint32_t i = 1; i <= switches; ++i)
    builder.add_hosts(hosts_per_switch, builder.add_switch(numbered("s", i)));
  for (uint32_t i = 0; i < switches; ++i) builder.add_trunk(i, (i + 1) % switches);
  return builder.take();
}

}  // namespace rocemu::network
