#include "emulator/command/nic/show_text.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "emulator/abi/flag_names.h"
#include "emulator/command/base/color.h"
#include "emulator/command/base/text_table.h"

namespace rocemu::command {
namespace {

/// A key of the daemon's JSON, and the heading of its column. A key that is missing in this table
/// also gets a column, so that a daemon can report more values without a change here.
struct Column {
  std::string_view key;
  std::string_view title;
};

constexpr Column kQpColumns[] = {
    {"number", "QPN"},
    {"type", "type"},
    {"state", "state"},
    {"client", "client"},
    {"pid", "pid"},
    {"comm", "program"},
    {"dest_qpn", "to QPN"},
    {"send_psn", "to send"},
    {"unacked_psn", "unacked"},
    {"msn", "MSN"},
    {"expected_psn", "expects"},
    {"send_posted", "sends"},
    {"recv_posted", "recvs"},
    {"send_cq", "send CQ"},
    {"recv_cq", "recv CQ"},
    {"srq", "SRQ"},
    {"pd", "PD"},
};
constexpr Column kCqColumns[] = {
    {"id", "CQ"},        {"client", "client"},     {"pid", "pid"},
    {"comm", "program"}, {"capacity", "capacity"}, {"waiting", "waiting"},
    {"armed", "armed"},  {"overrun", "overrun"},
};
constexpr Column kSrqColumns[] = {
    {"id", "SRQ"},       {"type", "type"},       {"client", "client"}, {"pid", "pid"},
    {"comm", "program"}, {"max_wr", "capacity"}, {"posted", "recvs"},  {"limit", "limit"},
    {"cq", "CQ"},        {"pd", "PD"},
};
constexpr Column kXrcdColumns[] = {{"id", "XRCD"}, {"clients", "clients"}};
constexpr Column kMrColumns[] = {
    {"id", "MR"},     {"client", "client"},   {"pid", "pid"},         {"comm", "program"},
    {"kind", "kind"}, {"address", "address"}, {"length", "length"},   {"lkey", "lkey"},
    {"rkey", "rkey"}, {"access", "access"},   {"windows", "windows"}, {"pd", "PD"},
};
constexpr Column kMwColumns[] = {
    {"id", "MW"},           {"type", "type"},     {"client", "client"}, {"pid", "pid"},
    {"comm", "program"},    {"rkey", "rkey"},     {"bound", "bound"},   {"mr", "MR"},
    {"address", "address"}, {"length", "length"}, {"access", "access"}, {"qp", "QPN"},
};
constexpr Column kClientColumns[] = {
    {"id", "client"}, {"pid", "pid"}, {"comm", "program"}, {"device", "device"}};

std::string cell(std::string_view key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_unsigned() && (key == "address" || key == "lkey" || key == "rkey" ||
                                     key == "number" || key == "dest_qpn" || key == "qp"))
    return hexadecimal(value.get<uint64_t>());
  if (key == "access" && value.is_number_unsigned())
    return abi::flags_text(value.get<uint64_t>(), abi::kAccessNames);
  return value.dump();
}

constexpr std::string_view kFirstSent = "sq_psn", kFirstExpected = "rq_psn";

bool is_psn(std::string_view key) {
  return key == "send_psn" || key == "unacked_psn" || key == "expected_psn";
}

/// Returns the text of a cell with a PSN of a QP, which is relative to the connection's first PSN.
std::string psn_cell(const std::string& key, const Json& qp) {
  const std::string first(key == "expected_psn" ? kFirstExpected : kFirstSent);
  const Json psn = qp.value(key, Json()), start = qp.value(first, Json());
  if (!psn.is_number_unsigned() || !start.is_number_unsigned()) return cell(key, psn);
  return psn_text(psn.get<uint32_t>(), start.get<uint32_t>());
}

const Json& member(const Json& object, const char* key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : nothing;
}

/// Returns a table that has a row for each object of the array; empty if the array is empty.
std::string table_of(const Json& array, std::span<const Column> columns,
                     const std::string& indent) {
  if (!array.is_array() || array.empty()) return "";
  std::vector<std::pair<std::string, std::string>> present;  // key, title
  const auto is_present = [&](std::string_view key) {
    return std::ranges::any_of(present, [&](const auto& column) { return column.first == key; });
  };
  for (const Column& column : columns)
    if (std::ranges::any_of(array, [&](const Json& row) { return row.contains(column.key); }))
      present.emplace_back(column.key, column.title);
  for (const Json& row : array)
    if (row.is_object())
      for (const auto& [key, value] : row.items())
        if (!is_present(key) && key != kFirstSent && key != kFirstExpected)
          present.emplace_back(key, key);

  std::vector<std::string> header;
  for (const auto& [key, title] : present) header.push_back(title);
  Table table(header);
  for (const Json& row : array) {
    std::vector<std::string> cells;
    for (const auto& [key, title] : present) {
      const Json& value = member(row, key.c_str());
      cells.push_back(value.is_null() ? "-" : is_psn(key) ? psn_cell(key, row) : cell(key, value));
    }
    table.add(cells);
  }
  return table.text(indent);
}

std::string section(const std::string& title, const std::string& table) {
  return "  " + title + (table.empty() ? ": none\n" : "\n" + table);
}

std::string counters_of(const Json& counters) {
  std::vector<std::pair<std::string, std::string>> rows;
  size_t width = 0;
  if (counters.is_object())
    for (const auto& [name, value] : counters.items()) {
      if (value.is_number() && value == 0) continue;  // most counters are 0
      rows.emplace_back(name, value.dump());
      width = std::max(width, name.size());
    }
  std::string text;
  for (const auto& [name, value] : rows)
    text += "    " + name + std::string(width - name.size() + 2, ' ') + value + "\n";
  return text;
}

std::string device_text(const Json& device) {
  std::string text = "\n";
  text += styled(cell("name", member(device, "name")), Style::kHeading, STDOUT_FILENO);
  for (const auto& [key, title] : {std::pair("port_state", "port"), std::pair("active_mtu", "MTU"),
                                   std::pair("pd_count", "PDs"), std::pair("ah_count", "AHs")}) {
    const Json& value = member(device, key);
    if (!value.is_null()) text += std::string("  ") + title + " " + cell(key, value);
  }
  if (const Json& profile = member(device, "profile"); !profile.is_null() && profile != "generic")
    text += "  profile " + cell("profile", profile);
  if (member(device, "removed") == true) text += "  removed";
  text += "\n";
  const Json& gids = member(device, "gids");
  for (size_t i = 0; i < gids.size(); ++i)
    text += "  GID " + std::to_string(i) + "  " + cell("gid", gids[i]) + "\n";
  const auto title = [&](const char* key, const std::string& words) {
    const Json& more = member(member(device, "omitted"), key);
    return more.is_null() ? words : words + " (and " + cell(key, more) + " more)";
  };
  text += section(title("qps", "queue pairs"), table_of(member(device, "qps"), kQpColumns, "    "));
  text += section(title("cqs", "completion queues"),
                  table_of(member(device, "cqs"), kCqColumns, "    "));
  text += section(title("srqs", "shared receive queues"),
                  table_of(member(device, "srqs"), kSrqColumns, "    "));
  text += section(title("xrcds", "XRC domains"),
                  table_of(member(device, "xrcds"), kXrcdColumns, "    "));
  text +=
      section(title("mrs", "memory regions"), table_of(member(device, "mrs"), kMrColumns, "    "));
  text +=
      section(title("mws", "memory windows"), table_of(member(device, "mws"), kMwColumns, "    "));
  text += section("counters (others are 0)", counters_of(member(device, "counters")));
  return text;
}

}  // namespace

std::string show_text(const Json& state) {
  std::string text = "NIC of pid " + cell("pid", member(state, "pid")) + " in " +
                     cell("dir", member(state, "dir")) + "\n";
  const std::string clients = table_of(member(state, "clients"), kClientColumns, "  ");
  text += clients.empty() ? "clients: none\n" : "clients\n" + clients;
  for (const Json& device : member(member(state, "fabric"), "devices")) text += device_text(device);
  return text;
}

}  // namespace rocemu::command
