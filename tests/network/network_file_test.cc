// Tests files of `--fabric`: the networks that they describe, and the errors in wrong files.
#include "emulator/network/file/network_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rocemu::network {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Topology read(const std::string& yaml) {
  return parse_network_file(yaml, "f.yaml").topology;
}

std::string error_of(const std::string& yaml) {
  try {
    parse_network_file(yaml, "f.yaml");
  } catch (const NetworkFileError& error) {
    return error.what();
  }
  return "no error";
}

std::string warning_of(const std::string& yaml) {
  const NetworkFile file = parse_network_file(yaml, "f.yaml");
  return file.warnings.empty() ? "no warning" : file.warnings[0];
}

TEST(NetworkFile, DescribesTheNetwork) {
  const NetworkFile file = parse_network_file(
      "switch: {buffer: 16MiB, ecn: {kmin: 100KiB, kmax: 400KiB, pmax: 0.2}, "
      "pfc: {xoff: 512KiB, xon: 384KiB}}\n"
      "links: {rate: 100Gbps, delay: 500ns}\n"
      "topology: {star: 16}\n"
      "nics: {dcqcn: default}\n",
      "f.yaml");
  EXPECT_THAT(file.warnings, IsEmpty());
  const Topology& topology = file.topology;
  ASSERT_THAT(topology.hosts, SizeIs(16));
  ASSERT_THAT(topology.switches, SizeIs(1));
  ASSERT_THAT(topology.links, SizeIs(16));
  EXPECT_EQ(topology.hosts[15].name, "h15");
  EXPECT_EQ(topology.switches[0].name, "s1");
  const SwitchParameters& at = topology.switches[0].parameters;
  EXPECT_EQ(at.buffer_bytes, 16u << 20);
  EXPECT_EQ(at.ecn, (EcnThresholds{102'400, 409'600, 0.2}));
  EXPECT_EQ(at.pfc, (PfcThresholds{524'288, 393'216, 0}));
  EXPECT_EQ(topology.links[3].rate_bps, 100'000'000'000u);
  EXPECT_EQ(topology.links[3].delay, 500ns);
  EXPECT_EQ(topology.nic.dcqcn, DcqcnParameters());
}

TEST(NetworkFile, HasTheUsualShapes) {
  EXPECT_THAT(read("topology: {dumbbell: {left: 3, right: 4}}").hosts, SizeIs(7));
  const Topology leaf_spine = read("topology: {leaf-spine: {leaves: 4, spines: 2, hosts: 8}}");
  EXPECT_THAT(leaf_spine.hosts, SizeIs(32));
  EXPECT_THAT(leaf_spine.links, SizeIs(32 + 8));
  // Al-Fares et al.: there are k^3/4 hosts, 5 k^2/4 switches, and on each of three levels as many
  // links as hosts.
  const Topology fat_tree = read("topology: {fat-tree: 16}");
  EXPECT_THAT(fat_tree.hosts, SizeIs(1024));
  EXPECT_THAT(fat_tree.switches, SizeIs(320));
  EXPECT_THAT(fat_tree.links, SizeIs(3 * 1024));
  EXPECT_THAT(read("topology: {ring: {switches: 5, hosts: 2}}").links, SizeIs(15));
}

TEST(NetworkFile, ListsNodesAndLinks) {
  const Topology topology = read(
      "links: {rate: 25Gbps}\n"
      "trunks: {rate: 400 Gbit/s, delay: 2us}\n"
      "topology:\n"
      "  hosts: [a, b]\n"
      "  switches: [left, {name: right, buffer: 1MB, decrement-ttl: yes}]\n"
      "  links:\n"
      "    - [a, left]\n"
      "    - {between: [right, b], delay: 3us}\n"
      "    - [left, right]\n"
      "overrides: {left-right: {rate: 1Tbps}, 'left:0': {delay: 9ns}}\n"
      "routing: up-down\n");
  EXPECT_EQ(topology.links[0].rate_bps, 25'000'000'000u);
  EXPECT_EQ(topology.links[0].delay, 9ns);
  EXPECT_EQ(topology.links[1].delay, 3us);
  EXPECT_EQ(topology.links[2].rate_bps, 1'000'000'000'000u);
  EXPECT_EQ(topology.links[2].delay, 2us);
  EXPECT_EQ(topology.switches[1].parameters.buffer_bytes, 1'000'000u);
  EXPECT_TRUE(topology.switches[1].parameters.decrements_ttl);
  EXPECT_EQ(topology.routing, Routing::kUpDown);
}

TEST(NetworkFile, MapsDscpToPriorities) {
  const Topology topology = read(
      "topology: {star: 2}\n"
      "priorities: {dscp: {26: 4, 48: 7}, default: 0, lossless: [4], strict: [7], weights: {4: "
      "3}}\n"
      "nics: {queue: 4KiB, dcqcn: {g: 0.5, byte-counter: 1MB, minimum-rate: 1Gbps}}\n");
  EXPECT_EQ(topology.priorities.of_dscp[0], 0);
  EXPECT_EQ(topology.priorities.of_dscp[26], 4);
  EXPECT_EQ(topology.priorities.of_dscp[48], 7);
  EXPECT_EQ(topology.priorities.lossless, 1u << 4);
  EXPECT_EQ(topology.priorities.strict, 1u << 7);
  EXPECT_EQ(topology.priorities.weights[4], 3u);
  EXPECT_EQ(topology.nic.queue_bytes, 4096u);
  ASSERT_TRUE(topology.nic.dcqcn);
  EXPECT_EQ(topology.nic.dcqcn->g, 0.5);
  EXPECT_EQ(topology.nic.dcqcn->byte_counter, 1'000'000u);
}

TEST(BadNetworkFile, NamesPlaceAndRemedy) {
  struct Case {
    const char* yaml;
    const char* place;
    const char* text;
  };
  const Case cases[] = {
      {"links: {}\n", "f.yaml:1:", "needs a 'topology'"},
      {"topology: {star: 1}\n", "f.yaml:1:18", "a number from 2 to"},
      {"topology: {stra: 4}\n", "f.yaml:1:12", "did you mean 'star'?"},
      {"topology: {star: 4, ring: 3}\n", "f.yaml:1:21", "one shape"},
      {"topology: {fat-tree: 5}\n", "f.yaml:1:22", "even number"},
      {"topology: {leaf-spine: {leaves: 2, spines: 2}}\n", "f.yaml:1:24", "needs 'hosts'"},
      {"topology: {star: 4}\nlinks: {rate: 0Gbps}\n", "f.yaml:2:15", "a rate of 0"},
      {"topology: {star: 4}\nlinks: {rate: 100}\n", "f.yaml:2:15", "such as 100Gbps"},
      {"topology: {star: 4}\nlinks: {delay: -1us}\n", "f.yaml:2:16", "expected a time"},
      {"topology: {star: 4}\nlinks: {speed: 1Gbps}\n", "f.yaml:2:9", "a link has no 'speed'"},
      {"topology: {star: 4}\nswitch: {ecn: {kmin: 1KB}}\n", "f.yaml:2:15", "needs 'kmax'"},
      {"topology: {star: 4}\nswitch: {ecn: {kmin: 9KB, kmax: 8KB, pmax: 1}}\n", "f.yaml:2:15",
       "above kmax"},
      {"topology: {star: 4}\nswitch: {ecn: {kmin: 1KB, kmax: 8KB, pmax: 1.5}}\n", "f.yaml:2:44",
       "probability"},
      {"topology: {star: 4}\nswitch: {ecn: {kmin: 1KB, kmax: 80MB, pmax: 1}}\n", "f.yaml:2:15",
       "no queue reaches it"},
      {"topology: {star: 4}\nswitch: {pfc: {xoff: 1KB, xon: 2KB}}\n", "f.yaml:2:15", "above xoff"},
      {"topology: {star: 4}\nswitch: {buffer: 1MB, pfc: {xoff: 2MB}}\n", "f.yaml:2:28",
       "cannot be reached"},
      {"topology: {star: 4}\nswitch: {buffer: 90KB, pfc: {xoff: 20KB}}\n", "f.yaml:2:18",
       "enlarge the buffer"},
      {"topology: {star: 4}\nswitch: {buffer: 1KB}\n", "f.yaml:2:18", "no room for a frame"},
      {"topology:\n  hosts: [a, b, c]\n  switches: [s, t]\n  links: [[a, s], [b, s], [c, t]]\n",
       "f.yaml:2:3", "no path from host a to host c; connect"},
      {"topology:\n  hosts: [a, b]\n  switches: [s]\n  links: [[a, s], [x, s]]\n", "f.yaml:4:20",
       "no host or switch 'x'"},
      {"topology:\n  hosts: [a, b]\n  switches: [s]\n  links: [[a, s]]\n", "f.yaml:2:3",
       "host b has no link"},
      {"topology:\n  hosts: [a, b]\n  switches: [s]\n  links: [[a, s], [b, s], [a, s]]\n",
       "f.yaml:2:3", "a host has one port"},
      {"topology:\n  hosts: [a, a]\n  links: [[a, a]]\n", "f.yaml:2:3", "two nodes are named 'a'"},
      {"topology: {star: 4}\noverrides: {h9-s1: {rate: 1Gbps}}\n", "f.yaml:2:13",
       "no link or switch 'h9-s1'"},
      {"topology: {star: 4}\npriorities: {default: 8}\n", "f.yaml:2:23", "from 0 to 7"},
      {"topology: {star: 4}\npriorities: {weights: {1: 0}}\n", "f.yaml:2:27", "from 1 to"},
      {"topology: {star: 4}\nrouting: random\n", "f.yaml:2:10", "shortest or up-down"},
      {"topology: {star: 4}\nnics: {dcqcn: maybe}\n", "f.yaml:2:15", "default, off"},
      {"topology: {star: 4}\nnics: {dcqcn: {alpha-interval: 0ns}}\n", "f.yaml:2:15", "cannot be 0"},
      {"[1, 2]\n", "f.yaml:1:1", "expected a mapping"},
      {"", "f.yaml", "expected a mapping"},
      {"topology: [", "f.yaml:1", ""},
  };
  for (const Case& one : cases) {
    const std::string error = error_of(one.yaml);
    EXPECT_THAT(error, HasSubstr(one.place)) << one.yaml;
    EXPECT_THAT(error, HasSubstr(one.text)) << one.yaml;
  }
}

TEST(NetworkFileWarning, NamesTheHeadroomThatTheCableNeeds) {
  // The needed headroom at 40 Gbit/s, or 5 bytes per nanosecond, is twice the delay of 10 us, three
  // frames of 4200 bytes, and a PFC frame of 84 bytes.
  const std::string warning = warning_of(
      "topology: {star: 4}\n"
      "links: {rate: 40Gbps, delay: 10us}\n"
      "switch: {pfc: {xoff: 100KB, headroom: 50KB}}\n");
  EXPECT_THAT(warning, HasSubstr("f.yaml:3:15"));
  EXPECT_THAT(warning, HasSubstr("it needs " + std::to_string(2 * 10'000 * 5 + 3 * 4200 + 84 + 1)));
}

TEST(NetworkFileWarning, NamesWhatProbablyIsNotMeant) {
  EXPECT_THAT(warning_of("topology: {star: 4}\nnics: {dcqcn: default}\n"),
              HasSubstr("no switch marks frames; add ecn"));
  EXPECT_THAT(warning_of("topology: {star: 4}\nswitch: {ecn: {kmin: 200KB, kmax: 400KB, pmax: 1}, "
                         "pfc: {xoff: 100KB}}\n"),
              HasSubstr("before ECN marks"));
  EXPECT_THAT(warning_of("topology: {star: 4}\nswitch: {pfc: {xoff: 100KB}}\n"
                         "priorities: {lossless: []}\n"),
              HasSubstr("no priority is lossless"));
  EXPECT_THAT(warning_of("topology: {ring: {switches: 5, hosts: 1}}\n"
                         "switch: {pfc: {xoff: 100KB}}\n"),
              HasSubstr("PFC may deadlock; use routing: up-down"));
  EXPECT_EQ(warning_of("topology: {ring: {switches: 5, hosts: 1}}\nrouting: up-down\n"
                       "switch: {pfc: {xoff: 100KB}}\n"),
            "no warning");
  EXPECT_EQ(warning_of("topology: {fat-tree: 4}\nswitch: {pfc: {xoff: 100KB}}\n"), "no warning");
}

TEST(NetworkFile, DiffersFromScenariosAndProfiles) {
  EXPECT_TRUE(is_network_file("topology: {star: 4}\n"));
  EXPECT_FALSE(is_network_file("rules: []\n"));
  EXPECT_FALSE(is_network_file("nodes: []\n"));
  EXPECT_FALSE(is_network_file(": ["));
}

}  // namespace
}  // namespace rocemu::network
