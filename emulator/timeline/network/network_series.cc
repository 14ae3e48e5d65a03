#include "emulator/timeline/network/network_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "emulator/journal/journal_reader.h"
#include "emulator/journal/recording.h"
#include "emulator/journal/replay.h"
#include "emulator/network/programs/program_network.h"

namespace rocemu::timeline {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostIntervals = 200;
/// The largest number of intervals that --interval may cause. A larger number is probably a
/// mistake.
constexpr size_t kMostWantedIntervals = 1'000'000;

/// The counters of a port at one time, summed over its priorities.
struct Counts {
  uint64_t tx_bytes = 0, ecn_marks = 0, drops = 0, tx_pauses = 0, rx_pauses = 0, queue_bytes = 0;

  Counts(const network::Network& network, network::PortId port) {
    for (uint8_t i = 0; i < network::kPriorities; ++i) {
      const network::PriorityCounters& one = network.counters(port, i);
      tx_bytes += one.tx_bytes;
      ecn_marks += one.ecn_marks;
      drops += one.drops;
      tx_pauses += one.tx_pauses;
      rx_pauses += one.rx_pauses;
      queue_bytes += one.queue_bytes;
    }
  }
  Counts() = default;
};

/// Assigns the events of the network to intervals of time. If there are too many intervals, their
/// length doubles.
class SeriesCollector final : public network::NetworkObserver {
 public:
  explicit SeriesCollector(const SeriesOptions& options) : options_(options) {
    series_.interval = options.interval.value_or(1us);
  }

  void on_inject(const engine::Injection& injection, engine::Instant now) override {
    if (!injection.qp || is_out_of_range(now)) return;
    std::vector<uint64_t>& bytes = qps_[{injection.from.value, injection.qp->value}];
    const size_t number = number_of(now);
    if (bytes.size() <= number) bytes.resize(number + 1);
    bytes[number] += injection.bytes_on_wire;
  }
  void on_hop(const network::Network& network, const network::Hop& hop) override {
    see(network, hop.port, hop.at);
  }
  void on_drop(const network::Network& network, network::PortId where,
               engine::Instant now) override {
    see(network, where, now);
  }

  NetworkSeries finish(const network::Network& network) {
    for (network::PortId i = 0; i < last_.size(); ++i) {
      const std::string name = network::port_name(network.topology(), network.port(i));
      if (!shows(name)) continue;
      PortSeries port{
          .port = name,
          .peer = network::port_name(network.topology(), network.port(network.port(i).peer)),
          .rate_bps = network.rate_bps(network.port(i).link),
          .intervals = std::move(intervals_[i]),
          .total = {}};
      port.intervals.resize(series_.interval_count);
      for (const PortInterval& one : port.intervals) port.total += one;
      if (!port.total.is_quiet()) series_.ports.push_back(std::move(port));
    }
    for (auto& [key, bytes] : qps_) {
      const auto& [host, qp_num] = key;
      const std::string& name = network.topology().hosts[host].name;
      if (!shows(name)) continue;
      bytes.resize(series_.interval_count);
      const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
      series_.qps.push_back({.host = name,
                             .qp_num = qp_num,
                             .rate_bps = network.rate_bps(network.port(host).link),
                             .tx_bytes = std::move(bytes),
                             .total_bytes = total});
    }
    return std::move(series_);
  }

 private:
  void see(const network::Network& network, network::PortId port, engine::Instant at) {
    if (last_.empty()) {
      last_.resize(network.port_count());
      intervals_.resize(network.port_count());
    }
    const Counts now(network, port);
    const Counts before = std::exchange(last_[port], now);
    if (is_out_of_range(at)) return;
    add_tx(port, at, now.tx_bytes - before.tx_bytes, network.rate_bps(network.port(port).link));
    PortInterval& in = interval_of(port, at);
    in += {.longest_queue_bytes = now.queue_bytes,
           .ecn_marks = now.ecn_marks - before.ecn_marks,
           .drops = now.drops - before.drops,
           .tx_pauses = now.tx_pauses - before.tx_pauses,
           .rx_pauses = now.rx_pauses - before.rx_pauses};
  }

  /// Adds a frame whose first bit leaves the port at the time `at`. Its bytes are divided among the
  /// intervals in which it leaves.
  void add_tx(network::PortId port, engine::Instant at, uint64_t bytes, uint64_t rate_bps) {
    if (bytes == 0) return;
    const engine::Duration time{
        static_cast<int64_t>((bytes * 8'000'000'000 + rate_bps - 1) / rate_bps)};
    number_of(at + time);  // afterwards the intervals do not merge
    uint64_t added = 0;
    for (engine::Instant begin = at; added < bytes && !is_out_of_range(begin);) {
      const auto number = static_cast<int64_t>(number_of(begin));
      const engine::Instant end = series_.begin + (number + 1) * series_.interval;
      const uint64_t until_end =
          end >= at + time
              ? bytes
              : bytes * static_cast<uint64_t>((end - at) / 1ns) / static_cast<uint64_t>(time / 1ns);
      interval_of(port, begin).tx_bytes += until_end - added;
      added = until_end;
      begin = end;
    }
  }

  bool is_out_of_range(engine::Instant at) const {
    return (options_.from && at < *options_.from) || (options_.to && at > *options_.to);
  }
  bool shows(const std::string& port) const {
    return options_.ports.empty() ||
           std::ranges::find(options_.ports, port) != options_.ports.end();
  }

  PortInterval& interval_of(network::PortId port, engine::Instant at) {
    const size_t number = number_of(at);
    std::vector<PortInterval>& intervals = intervals_[port];
    if (intervals.size() <= number) intervals.resize(number + 1);
    return intervals[number];
  }

  /// Returns the number of the interval that contains the time `at`. If the number would be too
  /// large, first merges pairs of intervals.
  size_t number_of(engine::Instant at) {
    if (!has_begun_) {
      has_begun_ = true;
      series_.begin = options_.from.value_or(at);
    }
    auto number =
        static_cast<size_t>(std::max<int64_t>((at - series_.begin) / series_.interval, 0));
    while (!options_.interval && number >= kMostIntervals) {
      merge();
      number /= 2;
    }
    if (number >= kMostWantedIntervals)
      throw std::runtime_error(
          "the intervals are too short for this run, which would have more than a "
          "million of them; give a longer --interval, or show less with --from and --to");
    series_.interval_count = std::max(series_.interval_count, number + 1);
    return number;
  }

  void merge() {
    series_.interval *= 2;
    series_.interval_count = (series_.interval_count + 1) / 2;
    for (std::vector<PortInterval>& intervals : intervals_) {
      for (size_t i = 0; i < intervals.size(); ++i) {
        const PortInterval one = std::exchange(intervals[i], {});
        intervals[i / 2] += one;
      }
      intervals.resize((intervals.size() + 1) / 2);
    }
    for (auto& [key, bytes] : qps_) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        const uint64_t one = std::exchange(bytes[i], 0);
        bytes[i / 2] += one;
      }
      bytes.resize((bytes.size() + 1) / 2);
    }
  }

  const SeriesOptions options_;
  NetworkSeries series_;
  bool has_begun_ = false;
  std::vector<Counts> last_;  // by port
  std::vector<std::vector<PortInterval>> intervals_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> qps_;  // by host and QP number
};

}  // namespace

PortInterval& PortInterval::operator+=(const PortInterval& other) {
  tx_bytes += other.tx_bytes;
  longest_queue_bytes = std::max(longest_queue_bytes, other.longest_queue_bytes);
  ecn_marks += other.ecn_marks;
  drops += other.drops;
  tx_pauses += other.tx_pauses;
  rx_pauses += other.rx_pauses;
  return *this;
}

double utilization(uint64_t rate_bps, uint64_t tx_bytes, engine::Duration time) {
  if (time.count() == 0) return 0;
  return static_cast<double>(tx_bytes) * 8e9 /
         (static_cast<double>(rate_bps) * static_cast<double>(time.count()));
}

NetworkSeries read_network_series(const std::string& directory, const SeriesOptions& options) {
  journal::JournalReader journal(directory + journal::kJournalFile);
  journal::Replay replay(journal);
  auto* const network = dynamic_cast<network::ProgramNetwork*>(replay.engine().simulated_network());
  if (network == nullptr)
    throw std::runtime_error(directory +
                             " is the recording of a run without a simulated network; record one "
                             "with rocemu run --lockstep --fabric FILE --record DIR");
  const network::Topology& topology = network->network().topology();
  for (const std::string& port : options.ports) {
    if (!network::find_port(topology, port))
      throw std::runtime_error(
          fmt::format("the network of {} has no port '{}'; a host's port has the host's name ({}), "
                      "and a switch's port has the switch's name and a number from 0",
                      directory, port, topology.hosts.front().name));
  }
  SeriesCollector collector(options);
  network->observe(collector);
  if (replay.run())
    throw std::runtime_error(fmt::format("the replay of {} differs; `rocemu replay {}` shows where",
                                         directory, directory));
  return collector.finish(network->network());
}

}  // namespace rocemu::timeline
