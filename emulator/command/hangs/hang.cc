#include "emulator/command/hangs/hang.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <fstream>

#include "emulator/command/base/error.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace {

using std::chrono::nanoseconds;

constexpr size_t kRecentEvents = 20;
constexpr int kMostLooks = 3;  // of find_hang(), after the first

/// Returns the NIC's description of a socket; empty if the NIC does not know it.
std::string meaning_of(const BlockedThread::Socket& socket, const Json& nic) {
  if (!nic.contains("waits")) return "";
  for (const Json& wait : nic["waits"]) {
    const bool is_it = (wait.contains("inode") && wait["inode"] == socket.inode) ||
                       (socket.peer != 0 && wait.contains("peer") && wait["peer"] == socket.peer);
    if (is_it)
      return wait["what"].get<std::string>() + " (descriptor " + std::to_string(socket.descriptor) +
             ")";
  }
  return "";
}

std::string line_of(const BlockedThread& thread, const Json& nic) {
  std::string meanings;
  for (const BlockedThread::Socket& socket : thread.sockets) {
    const std::string meaning = meaning_of(socket, nic);
    if (!meaning.empty()) meanings += (meanings.empty() ? "" : "; ") + meaning;
  }
  const bool is_all =
      thread.sockets.size() == 1 && !meanings.empty() && thread.what.find(',') == std::string::npos;
  std::string line = "  " + thread.name() + " ";
  if (is_all) return line + "waits in " + meanings + "\n";
  line += thread.what;
  if (!meanings.empty()) line += "; among them " + meanings;
  return line + "\n";
}

std::string section(const char* title, const Json& nic, const char* key) {
  if (!nic.contains(key) || nic[key].empty()) return "";
  std::string text = std::string(title) + ":\n";
  for (const Json& line : nic[key]) text += "  " + line.get<std::string>() + "\n";
  return text;
}

bool waits(const BlockedThread& thread, bool counts_polling) {
  return thread.waker == Waker::kNobody || (counts_polling && thread.waker == Waker::kPolling);
}

}  // namespace

nanoseconds parse_time(const std::string& subcommand, const std::string& option,
                       const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  const double factor = unit == "ms"                  ? 1e6
                        : unit.empty() || unit == "s" ? 1e9
                        : unit == "m"                 ? 60e9
                        : unit == "h"                 ? 3600e9
                                                      : 0;
  constexpr double kMost = 100.0 * 365 * 24 * 3600 * 1e9;
  const double time = value * factor;
  if (error != std::errc() || !std::isfinite(time) || time < 1e6 || time > kMost)
    throw UsageError(subcommand + ": " + option + " '" + text +
                     "' is not a time of at least 1 ms, such as 90, 1.5s, 500ms or 2m");
  return nanoseconds(static_cast<int64_t>(time));
}

std::string with_unit(const std::string& time) {
  const bool has_unit = time.find_first_of("smh") != std::string::npos;
  return has_unit ? time : time + " s";
}

/// Inspects each thread until it was waiting two times in a row, without a context switch in
/// between; then it was waiting all the time. Context switches of threads that poll are ignored. A
/// turn in which a thread checks its condition is a context switch, too.
std::optional<std::vector<BlockedThread>> find_hang(const Look& look, bool counts_polling) {
  const auto all_wait = [&](const std::vector<BlockedThread>& threads) {
    return !threads.empty() && std::ranges::all_of(threads, [&](const BlockedThread& thread) {
      return waits(thread, counts_polling);
    });
  };
  const auto is_same = [](const BlockedThread& a, const BlockedThread& b) {
    return a.thread == b.thread && a.waker == b.waker &&
           (a.waker == Waker::kPolling || a.switches == b.switches);
  };
  std::vector<BlockedThread> first = look();
  for (int i = 0; i < kMostLooks && all_wait(first); ++i) {
    std::vector<BlockedThread> second = look();
    if (all_wait(second) && std::ranges::equal(first, second, is_same)) return second;
    first = std::move(second);
  }
  return std::nullopt;
}

std::string describe_waits(const std::vector<BlockedThread>& threads, const Json& nic) {
  std::string text = "waiting threads:\n";
  for (const BlockedThread& thread : threads) text += line_of(thread, nic);
  text += section("objects of the NIC", nic, "objects");
  text += section("rules that acted", nic, "rules");
  text += section("latest completions", nic, "completions");
  text += section("latest frames", nic, "frames");
  return text;
}

std::string recent_events(const std::string& dir) {
  std::ifstream file(dir + journal::kEventsFile);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (last.size() > kRecentEvents) last.pop_front();
  }
  if (last.empty()) return "";
  std::string text = "latest events in the recording:\n";
  for (const std::string& line : last) text += "  " + line + "\n";
  return text;
}

}  // namespace rocemu::command
