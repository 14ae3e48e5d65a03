#include "emulator/timeline/network/write_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rocemu::timeline {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kLevels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

double microseconds(engine::Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

engine::Instant begin_of(const NetworkSeries& series, size_t interval) {
  return series.begin + static_cast<int64_t>(interval) * series.interval;
}

/// Returns the character that shows a value, given as a fraction of the largest value.
std::string_view level_of(double share) {
  if (share <= 0) return kLevels[0];
  const auto last = static_cast<double>(kLevels.size() - 1);
  return kLevels[static_cast<size_t>(std::clamp(std::round(share * last), 1.0, last))];
}

/// Returns a row of at most `columns` characters. Each character stands for one or more intervals,
/// and shows the largest value among them.
template <class ShareOf>
std::string row_of(const NetworkSeries& series, size_t columns, ShareOf share_of) {
  std::string row;
  const size_t count = std::min(columns, series.interval_count);
  for (size_t i = 0; i < count; ++i) {
    double most = 0;
    for (size_t k = i * series.interval_count / count; k < (i + 1) * series.interval_count / count;
         ++k)
      most = std::max(most, share_of(k));
    row += level_of(most);
  }
  return row;
}

uint64_t longest_queue(const NetworkSeries& series) {
  uint64_t longest = 0;
  for (const PortSeries& port : series.ports)
    longest = std::max(longest, port.total.longest_queue_bytes);
  return longest;
}

uint64_t most_of(const PortSeries& port, uint64_t PortInterval::*member) {
  uint64_t most = 0;
  for (const PortInterval& one : port.intervals) most = std::max(most, one.*member);
  return most;
}

/// Returns the number of characters for the values of a row, if the text is `width` characters
/// wide.
size_t columns(size_t width) {
  return std::max<size_t>(width, 20) - 10;
}

double gigabits_per_second(uint64_t bytes, engine::Duration time) {
  return time.count() == 0 ? 0 : static_cast<double>(bytes) * 8 / static_cast<double>(time.count());
}

std::string name_of(const QpSeries& qp) {
  return fmt::format("{} QP {:#x}", qp.host, qp.qp_num);
}

void write_qps(const NetworkSeries& series, size_t columns, std::ostream& out) {
  const auto time = static_cast<int64_t>(series.interval_count) * series.interval;
  for (const QpSeries& qp : series.qps) {
    out << fmt::format("{}  {:.2f} Gbit/s on average\n", name_of(qp),
                       gigabits_per_second(qp.total_bytes, time));
    out << "  rate  |" << row_of(series, columns, [&](size_t i) {
      return utilization(qp.rate_bps, qp.tx_bytes[i], series.interval);
    }) << "|\n";
  }
}

/// Returns a chart whose vertical axis ends at `most`. This value is the same for all ports, so
/// that their charts can be compared.
std::string chart_of(const NetworkSeries& series, double most, std::string_view color,
                     const auto& value_of) {
  constexpr double kWidth = 800, kHeight = 60;
  std::string points = fmt::format("0,{:g}", kHeight);
  const double step = kWidth / static_cast<double>(std::max<size_t>(series.interval_count, 1));
  for (size_t i = 0; i < series.interval_count; ++i) {
    const double y = kHeight - kHeight * (most > 0 ? value_of(i) / most : 0);
    points += fmt::format(" {:.2f},{:.2f} {:.2f},{:.2f}", static_cast<double>(i) * step, y,
                          static_cast<double>(i + 1) * step, y);
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {0:g} {1:g}\" preserveAspectRatio=\"none\"><polygon points=\"{2} "
      "{0:g},{1:g}\" fill=\"{3}\"/></svg>",
      kWidth, kHeight, points, color);
}

}  // namespace

void write_series_text(const NetworkSeries& series, size_t width, std::ostream& out) {
  const auto time = static_cast<int64_t>(series.interval_count) * series.interval;
  out << fmt::format("from {:.3f} us, {} intervals of {:g} us\n",
                     microseconds(series.begin.time_since_epoch()), series.interval_count,
                     microseconds(series.interval));
  if (series.ports.empty()) {
    out << "no port has sent a frame\n";
    return;
  }
  size_t name = 4, peer = 2;
  for (const PortSeries& port : series.ports) {
    name = std::max(name, port.port.size());
    peer = std::max(peer, port.peer.size());
  }
  const uint64_t longest = longest_queue(series);
  out << fmt::format("{:{}}  {:{}}  {:>7}  {:>10}  {:>6}  {:>5}  {:>6}\n", "port", name, "to", peer,
                     "used", "max. queue", "marks", "drops", "pauses");
  for (const PortSeries& port : series.ports) {
    out << fmt::format("{:{}}  {:{}}  {:>5.1f} %  {:>10}  {:>6}  {:>5}  {:>6}\n", port.port, name,
                       port.peer, peer, utilization(port.rate_bps, port.total.tx_bytes, time) * 100,
                       port.total.longest_queue_bytes, port.total.ecn_marks, port.total.drops,
                       port.total.rx_pauses);
    out << "  used  |" << row_of(series, columns(width), [&](size_t i) {
      return utilization(port.rate_bps, port.intervals[i].tx_bytes, series.interval);
    }) << "|\n";
    const auto write_row = [&](std::string_view title, uint64_t PortInterval::*member,
                               uint64_t most) {
      if (most == 0) return;
      out << fmt::format("  {:<6}|", title) << row_of(series, columns(width), [&](size_t i) {
        return static_cast<double>(port.intervals[i].*member) / static_cast<double>(most);
      }) << "|\n";
    };
    write_row("queue", &PortInterval::longest_queue_bytes,
              port.total.longest_queue_bytes == 0 ? 0 : longest);
    write_row("marks", &PortInterval::ecn_marks, most_of(port, &PortInterval::ecn_marks));
    write_row("drops", &PortInterval::drops, most_of(port, &PortInterval::drops));
    write_row("pauses", &PortInterval::rx_pauses, most_of(port, &PortInterval::rx_pauses));
  }
  write_qps(series, columns(width), out);
}

void write_series_csv(const NetworkSeries& series, std::ostream& out) {
  out << "time_ns,port,tx_bytes,utilization,longest_queue_bytes,ecn_marks,drops,tx_pauses,"
         "rx_pauses,qp\n";
  for (size_t i = 0; i < series.interval_count; ++i) {
    for (const PortSeries& port : series.ports) {
      const PortInterval& one = port.intervals[i];
      if (one.is_quiet()) continue;
      out << fmt::format(
          "{},{},{},{:.4f},{},{},{},{},{},\n", begin_of(series, i).time_since_epoch().count(),
          port.port, one.tx_bytes, utilization(port.rate_bps, one.tx_bytes, series.interval),
          one.longest_queue_bytes, one.ecn_marks, one.drops, one.tx_pauses, one.rx_pauses);
    }
    for (const QpSeries& qp : series.qps) {
      if (qp.tx_bytes[i] == 0) continue;
      out << fmt::format("{},,{},{:.4f},,,,,,{}\n", begin_of(series, i).time_since_epoch().count(),
                         qp.tx_bytes[i], utilization(qp.rate_bps, qp.tx_bytes[i], series.interval),
                         name_of(qp));
    }
  }
}

void write_series_page(const NetworkSeries& series, std::ostream& out) {
  const auto time = static_cast<int64_t>(series.interval_count) * series.interval;
  const auto longest = static_cast<double>(longest_queue(series));
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<title>Simulated network</title>\n<style>\n"
         "body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:900px}\n"
         "h2{margin:1.2em 0 .2em;font-size:16px}\n"
         "p{margin:.2em 0;color:#555}\n"
         "svg{width:100%;height:60px;background:#f4f4f4;display:block;margin:2px 0}\n"
         "</style></head><body>\n<h1>Simulated network</h1>\n";
  out << fmt::format(
      "<p>From {:.3f} us of virtual time, {} intervals of {:g} us. Blue: use of the "
      "link, up to its rate. Orange: the longest queue, up to {:.0f} bytes. Red: ECN "
      "marks. Purple: pauses that the port received. Green: the rate at which a QP "
      "sends, up to the rate of its link.</p>\n",
      microseconds(series.begin.time_since_epoch()), series.interval_count,
      microseconds(series.interval), longest);
  for (const PortSeries& port : series.ports) {
    // Names of ports need no escaping, since names in a network file consist of letters, digits,
    // '-' and '.'.
    out << fmt::format(
        "<h2>{} to {}</h2>\n<p>{:.1f} % used, longest queue {} bytes, {} marks, {} drops, {} "
        "pauses</p>\n",
        port.port, port.peer, utilization(port.rate_bps, port.total.tx_bytes, time) * 100,
        port.total.longest_queue_bytes, port.total.ecn_marks, port.total.drops,
        port.total.rx_pauses);
    out << chart_of(series, 1, "#2a6fdb", [&](size_t i) {
      return std::min(1.0, utilization(port.rate_bps, port.intervals[i].tx_bytes, series.interval));
    }) << "\n";
    if (port.total.longest_queue_bytes != 0) {
      out << chart_of(series, longest, "#e08a1e", [&](size_t i) {
        return static_cast<double>(port.intervals[i].longest_queue_bytes);
      }) << "\n";
    }
    const auto write_events = [&](uint64_t PortInterval::*member, std::string_view color) {
      const uint64_t most = most_of(port, member);
      if (most == 0) return;
      out << chart_of(series, static_cast<double>(most), color, [&](size_t i) {
        return static_cast<double>(port.intervals[i].*member);
      }) << "\n";
    };
    write_events(&PortInterval::ecn_marks, "#c62828");
    write_events(&PortInterval::rx_pauses, "#7b1fa2");
  }
  if (!series.qps.empty()) out << "<h1>Rates of QPs</h1>\n";
  for (const QpSeries& qp : series.qps) {
    out << fmt::format("<h2>{}</h2>\n<p>{:.2f} Gbit/s on average</p>\n", name_of(qp),
                       gigabits_per_second(qp.total_bytes, time));
    out << chart_of(series, 1, "#2e7d32", [&](size_t i) {
      return std::min(1.0, utilization(qp.rate_bps, qp.tx_bytes[i], series.interval));
    }) << "\n";
  }
  out << "</body></html>\n";
}

void write_series_trace(const NetworkSeries& series, std::ostream& out) {
  out << R"({"displayTimeUnit":"ns","traceEvents":[)";
  std::string_view comma;
  const auto write = [&](const OrderedJson& event) {
    out << comma << "\n" << event.dump();
    comma = ",";
  };
  for (size_t p = 0; p < series.ports.size(); ++p) {
    const PortSeries& port = series.ports[p];
    write({{"ph", "M"},
           {"name", "process_name"},
           {"pid", p + 1},
           {"args", {{"name", fmt::format("{} to {}", port.port, port.peer)}}}});
    PortInterval before;
    for (size_t i = 0; i <= series.interval_count; ++i) {
      const PortInterval now = i < series.interval_count ? port.intervals[i] : PortInterval{};
      const auto count = [&](std::string_view name, OrderedJson values) {
        write({{"ph", "C"},
               {"name", name},
               {"pid", p + 1},
               {"ts", microseconds(begin_of(series, i).time_since_epoch())},
               {"args", std::move(values)}});
      };
      if (i == 0 || now.tx_bytes != before.tx_bytes)
        count("utilization",
              {{"%", 100 * utilization(port.rate_bps, now.tx_bytes, series.interval)}});
      if (i == 0 || now.longest_queue_bytes != before.longest_queue_bytes)
        count("queue", {{"bytes", now.longest_queue_bytes}});
      if (i == 0 || now.ecn_marks != before.ecn_marks || now.rx_pauses != before.rx_pauses)
        count("events", {{"marks", now.ecn_marks}, {"pauses", now.rx_pauses}});
      before = now;
    }
  }
  for (size_t q = 0; q < series.qps.size(); ++q) {
    const QpSeries& qp = series.qps[q];
    const size_t pid = series.ports.size() + q + 1;
    write({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name_of(qp)}}}});
    uint64_t before = 0;
    for (size_t i = 0; i <= series.interval_count; ++i) {
      const uint64_t now = i < series.interval_count ? qp.tx_bytes[i] : 0;
      if (i != 0 && now == before) continue;
      before = now;
      write({{"ph", "C"},
             {"name", "rate"},
             {"pid", pid},
             {"ts", microseconds(begin_of(series, i).time_since_epoch())},
             {"args", {{"Gbit/s", gigabits_per_second(now, series.interval)}}}});
    }
  }
  out << "\n]}\n";
}

}  // namespace rocemu::timeline
