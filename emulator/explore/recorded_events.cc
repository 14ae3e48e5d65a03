#include "emulator/explore/recorded_events.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

namespace rocemu::explore {
namespace {

/// Commands of librdmacm, and the functions that send them. What is missing fails no function.
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
  for (const auto& [client, pid] : pid_of_client)
    events.process_of_pid[pid] = events.process_of_client[client];
  // What came before the name: the opening of a channel, the attachment of a client.
  for (RecordedEvent& event : events.list) {
    if (!event.process.empty()) continue;
    if (event.json.contains("channel")) event.process = of_channel[event.number("channel")];
    if (event.json.contains("client"))
      event.process = events.process_of_client[event.number("client")];
  }
  return events;
}

void add_call_sites(RecordedEvents& events, const std::filesystem::path& dir,
                    const std::filesystem::path& sites) {
  // By process and call, in the order of the calls.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> told;
  for (const auto& [pid, process] : read_events(dir).process_of_pid) {
    std::ifstream file(sites / std::to_string(pid));
    for (std::string name, stack; file >> name >> stack;) {
      const std::string function = function_of(name);
      told[{process, function.empty() ? name : function}].push_back(stack);
    }
  }
  std::map<std::pair<std::string, std::string>, std::vector<RecordedEvent*>> calls;
  for (RecordedEvent& event : events.list)
    if (const std::string call = event.call(); !call.empty() && !event.process.empty())
      calls[{event.process, call}].push_back(&event);
  for (auto& [key, list] : calls) {
    const std::vector<std::string>& stacks = told[key];
    if (stacks.size() != list.size()) continue;
    for (size_t i = 0; i < list.size(); ++i) list[i]->call_site = stacks[i];
  }
}

std::map<std::string, int64_t> objects_left(const RecordedEvents& events) {
  const auto destroys = [](const std::string& call) {
    return std::ranges::find(kLifetimes, call, &Lifetime::destroyed_by) != kLifetimes.end();
  };
  // If the fault itself is that one cannot be destroyed, a program that tries has done its part.
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
  // Who was killed, or whose device has gone, could not.
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
