#include "emulator/explore/points/recorded_events.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "emulator/abi/call_sites.h"

namespace rocemu::explore {
namespace fs = std::filesystem;
namespace {

/// The commands that librdmacm sends to the kernel, and the functions that send them. Commands
/// whose failure makes no function fail are left out.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kCmCalls = {{
    {"open_channel", "rdma_create_event_channel"},
    {"create_id", "rdma_create_id"},
    {"destroy_id", "rdma_destroy_id"},
    {"bind", "rdma_bind_addr"},
    {"listen", "rdma_listen"},
    {"resolve_addr", "rdma_resolve_addr"},
    {"resolve_route", "rdma_resolve_route"},
    {"connect", "rdma_connect"},
    {"accept", "rdma_accept"},
    {"reject", "rdma_reject"},
    {"disconnect", "rdma_disconnect"},
    {"init_qp_attr", "rdma_init_qp_attr"},
    {"set_option", "rdma_set_option"},
    {"migrate_id", "rdma_migrate_id"},
    {"join_mcast", "rdma_join_multicast"},
    {"leave_mcast", "rdma_leave_multicast"},
}};

std::string function_of(std::string_view cm_command) {
  for (const auto& [of_kernel, function] : kCmCalls)
    if (of_kernel == cm_command) return std::string(function);
  return "";
}

struct Lifetime {
  std::string_view made_by, destroyed_by, what;
};
constexpr std::array<Lifetime, 10> kLifetimes = {{
    {"alloc_pd", "dealloc_pd", "PD"},
    {"reg_mr", "dereg_mr", "MR"},
    {"create_cq", "destroy_cq", "CQ"},
    {"create_qp", "destroy_qp", "QP"},
    {"create_srq", "destroy_srq", "SRQ"},
    {"create_ah", "destroy_ah", "AH"},
    {"alloc_mw", "dealloc_mw", "MW"},
    {"alloc_dm", "free_dm", "DM"},
    {"open_xrcd", "close_xrcd", "XRCD"},
    {"rdma_create_id", "rdma_destroy_id", "rdma_cm id"},
}};

}  // namespace

std::string RecordedEvent::text(const char* key) const {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t RecordedEvent::number(const char* key) const {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<uint64_t>() : 0;
}

std::string RecordedEvent::call() const {
  std::string what = text("what");
  if (what == "verb") return text("verb");
  if (what == "post_send" || what == "post_recv" || what == "post_srq_recv" ||
      what == "req_notify_cq")
    return what;
  return what == "cm_command" ? function_of(text("command")) : "";
}

RecordedEvents read_events(const std::filesystem::path& dir) {
  RecordedEvents events;
  std::map<uint64_t, std::string> of_channel;
  std::map<uint64_t, uint64_t> pid_of_client;
  std::ifstream file(dir / "events.jsonl");
  for (std::string line; std::getline(file, line);) {
    RecordedEvent event{Json::parse(line, nullptr, false), ""};
    if (event.json.is_discarded() || !event.json.is_object()) break;
    const std::string what = event.text("what");
    const bool has_client = event.json.contains("client");
    if (what == "client") pid_of_client[event.number("client")] = event.number("pid");
    if (what == "process") {
      (has_client ? events.process_of_client[event.number("client")]
                  : of_channel[event.number("channel")]) = event.text("process");
      continue;
    }
    if (has_client) {
      event.process = events.process_of_client[event.number("client")];
    } else if (event.json.contains("channel")) {
      event.process = of_channel[event.number("channel")];
    }
    events.end_ns = std::max(events.end_ns, event.time_ns());
    events.list.push_back(std::move(event));
  }
  for (const auto& [client, pid] : pid_of_client) {
    const std::string& process = events.process_of_client[client];
    events.process_of_pid[pid] = process;
    std::vector<std::string>& all = events.processes_of_pid[pid];
    if (std::ranges::find(all, process) == all.end()) all.push_back(process);
  }
  // Sets the process of each event that has none yet. This is done last, since an event can be
  // recorded before its process has a name, such as the opening of a channel or the attachment of a
  // client.
  for (RecordedEvent& event : events.list) {
    if (!event.process.empty()) continue;
    if (event.json.contains("channel")) event.process = of_channel[event.number("channel")];
    if (event.json.contains("client"))
      event.process = events.process_of_client[event.number("client")];
  }
  return events;
}

namespace {

struct CallSite {
  std::string name, stack;
  size_t count;  // events
};

/// The call sites of one process: for each name of a recorded call, those of its calls in order.
using CallSites = std::map<std::string, std::vector<CallSite>>;

/// Returns a table of call sites for each program that the process executed and that opened a
/// device.
std::vector<CallSites> read_call_sites(const fs::path& path) {
  std::vector<CallSites> programs;
  std::ifstream file(path);
  for (CallSite site; file >> site.name >> site.stack >> site.count;) {
    if (programs.empty() || site.name == abi::kExecuted) programs.emplace_back();
    if (site.name == abi::kExecuted) continue;
    const std::string function = function_of(site.name);
    if (!function.empty()) site.name = function;
    programs.back()[site.name == "bind_mw" ? "post_send" : site.name].push_back(site);
  }
  std::erase_if(programs, [](const CallSites& sites) { return !sites.contains("open_device"); });
  return programs;
}

size_t events_of(const std::vector<CallSite>& sites) {
  size_t count = 0;
  for (const CallSite& site : sites) count += site.count;
  return count;
}

}  // namespace

void add_call_sites(RecordedEvents& events, const fs::path& dir, const fs::path& sites) {
  std::map<std::string, CallSites> told;
  for (const auto& [pid, processes] : read_events(dir).processes_of_pid) {
    const std::vector<CallSites> programs = read_call_sites(sites / std::to_string(pid));
    if (programs.size() != processes.size()) continue;
    for (size_t i = 0; i < programs.size(); ++i) told[processes[i]] = programs[i];
  }
  std::map<std::pair<std::string, std::string>, std::vector<RecordedEvent*>> calls;
  for (RecordedEvent& event : events.list)
    if (const std::string call = event.call(); !call.empty() && !event.process.empty())
      calls[{event.process, call}].push_back(&event);
  for (auto& [key, list] : calls) {
    const auto& [process, call] = key;
    const std::vector<CallSite>& known = told[process][call];
    if (events_of(known) != list.size()) continue;
    size_t next = 0;
    std::map<std::string, uint64_t> numbers;
    for (const CallSite& site : known) {
      const uint64_t number = ++numbers[site.name];
      for (size_t i = 0; i < site.count; ++i, ++next) {
        list[next]->call_site = site.stack;
        list[next]->call_name = site.name;
        list[next]->call_number = number;
        list[next]->is_of_list = i > 0;
      }
    }
  }
}

std::map<std::string, int64_t> objects_left(const RecordedEvents& events) {
  const auto destroys = [](const std::string& call) {
    return std::ranges::find(kLifetimes, call, &Lifetime::destroyed_by) != kLifetimes.end();
  };
  // If the fault makes the destruction of an object fail, the program has done its part when it
  // tries to destroy the object.
  bool trying_is_enough = false;
  for (size_t i = 0; i + 1 < events.list.size(); ++i) {
    trying_is_enough |= events.list[i].json.contains("error") && destroys(events.list[i].call()) &&
                        events.list[i + 1].text("what") == "fault";
  }
  std::map<std::string, int64_t> left;
  for (const RecordedEvent& event : events.list) {
    const std::string call = event.call();
    if (call.empty() || event.process.empty()) continue;
    const bool failed = event.json.contains("error");
    for (const Lifetime& lifetime : kLifetimes) {
      const std::string key = event.process + " " + std::string(lifetime.what);
      if (call == lifetime.made_by && !failed) ++left[key];
      if (call == lifetime.destroyed_by && (!failed || trying_is_enough)) --left[key];
    }
  }
  // Objects of a process that was killed, or whose device was removed, do not count, since the
  // process could not destroy them.
  for (const RecordedEvent& event : events.list) {
    const std::string what = event.text("what");
    if (what != "killed" && what != "device_lost") continue;
    std::erase_if(left, [name = event.process + " "](const auto& one) {
      return one.first.starts_with(name);
    });
  }
  std::erase_if(left, [](const auto& one) { return one.second <= 0; });
  return left;
}

}  // namespace rocemu::explore
