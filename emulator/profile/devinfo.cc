#include "emulator/profile/devinfo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "emulator/profile/field_names.h"
#include "emulator/profile/yaml_text.h"

namespace rocemu::profile {
namespace {

/// The format in which ibv_devinfo prints a value
enum class Form : uint8_t {
  kNumber,          // "131072", "0x02c9", "4095 us", "1000000kHZ", "131072Bytes"
  kNumberAndNames,  // the same, with names on indented lines
  kText,            // "22.36.1010"
  kParens,     // "4096 (5)", "ATOMIC_HCA (1)": the number in parentheses, by its name in a profile
  kFlagBits,   // "0xed721c36", with the flags' names below it
  kFlagNames,  // nothing, with the names of flags on indented lines
};

struct DumpLine {
  std::string_view name;  // in the dump
  std::string_view section, key;
  Form form = Form::kNumber;
  std::span<const FieldName> names = {};
};

constexpr FieldName kOdpGeneralWords[] = {{"ODP_SUPPORT", 1}, {"ODP_SUPPORT_IMPLICIT", 2}};
constexpr FieldName kOdpWords[] = {{"SUPPORT_SEND", 1},    {"SUPPORT_RECV", 2},
                                   {"SUPPORT_WRITE", 4},   {"SUPPORT_READ", 8},
                                   {"SUPPORT_ATOMIC", 16}, {"SUPPORT_SRQ", 32}};

// clang-format off
constexpr DumpLine kLines[] = {
    {"fw_ver", "device", "fw_ver", Form::kText},
    {"vendor_id", "device", "vendor_id"},
    {"vendor_part_id", "device", "vendor_part_id"},
    {"hw_ver", "device", "hw_ver"},
    {"board_id", "identity", "board_id", Form::kText},
    {"phys_port_cnt", "device", "phys_port_cnt"},
    {"max_mr_size", "device", "max_mr_size"},
    {"page_size_cap", "device", "page_size_cap"},
    {"max_qp", "device", "max_qp"},
    {"max_qp_wr", "device", "max_qp_wr"},
    {"device_cap_flags", "device", "device_cap_flags", Form::kFlagBits, kCapFlags},
    {"max_sge", "device", "max_sge"},
    {"max_sge_rd", "device", "max_sge_rd"},
    {"max_cq", "device", "max_cq"},
    {"max_cqe", "device", "max_cqe"},
    {"max_mr", "device", "max_mr"},
    {"max_pd", "device", "max_pd"},
    {"max_qp_rd_atom", "device", "max_qp_rd_atom"},
    {"max_res_rd_atom", "device", "max_res_rd_atom"},
    {"max_qp_init_rd_atom", "device", "max_qp_init_rd_atom"},
    {"atomic_cap", "device", "atomic_cap", Form::kParens, kAtomicCaps},
    {"max_mw", "device", "max_mw"},
    {"max_mcast_grp", "device", "max_mcast_grp"},
    {"max_mcast_qp_attach", "device", "max_mcast_qp_attach"},
    {"max_total_mcast_qp_attach", "device", "max_total_mcast_qp_attach"},
    {"max_ah", "device", "max_ah"},
    {"max_srq", "device", "max_srq"},
    {"max_srq_wr", "device", "max_srq_wr"},
    {"max_srq_sge", "device", "max_srq_sge"},
    {"max_pkeys", "device", "max_pkeys"},
    {"local_ca_ack_delay", "device", "local_ca_ack_delay"},
    {"general_odp_caps", "device", "general_odp_caps", Form::kFlagNames, kOdpGeneralWords},
    {"rc_odp_caps", "device", "rc_odp_caps", Form::kFlagNames, kOdpWords},
    {"uc_odp_caps", "device", "uc_odp_caps", Form::kFlagNames, kOdpWords},
    {"ud_odp_caps", "device", "ud_odp_caps", Form::kFlagNames, kOdpWords},
    {"xrc_odp_caps", "device", "xrc_odp_caps", Form::kFlagNames, kOdpWords},
    {"completion timestamp_mask", "device", "completion_timestamp_mask"},
    {"completion_timestamp_mask", "device", "completion_timestamp_mask"},
    {"hca_core_clock", "device", "hca_core_clock"},
    {"device_cap_flags_ex", "device", "device_cap_flags_ex", Form::kNumberAndNames},
    {"max_cq_count", "device", "max_cq_count"},
    {"max_cq_period", "device", "max_cq_period"},
    {"maximum available device memory", "device", "max_dm_size"},
    {"max_mtu", "port", "max_mtu", Form::kParens, kMtus},
    {"active_mtu", "port", "active_mtu", Form::kParens, kMtus},
    {"sm_lid", "port", "sm_lid"},
    {"port_lid", "port", "port_lid"},
    {"port_lmc", "port", "port_lmc"},
    {"link_layer", "port", "link_layer", Form::kText, kLinkLayers},
    {"max_msg_sz", "port", "max_msg_sz"},
    {"port_cap_flags", "port", "port_cap_flags"},
    {"max_vl_num", "port", "max_vl_num", Form::kParens},
    {"pkey_tbl_len", "port", "pkey_tbl_len"},
    {"gid_tbl_len", "port", "gid_tbl_len"},
    {"active_width", "port", "active_width", Form::kParens, kWidths},
    {"active_speed", "port", "active_speed", Form::kParens, kSpeeds},
};
// clang-format on

/// The lines of a dump that are ignored, with the indented lines below them: those that are
/// specific to one machine, and those about features that rocemu does not emulate.
constexpr std::string_view kLeftOut[] = {"node_guid",
                                         "sys_image_guid",
                                         "max_ee_rd_atom",
                                         "max_ee_init_rd_atom",
                                         "max_ee",
                                         "max_rdd",
                                         "max_raw_ipv6_qp",
                                         "max_raw_ethy_qp",
                                         "max_fmr",
                                         "raw packet caps",
                                         "tso_caps",
                                         "max_tso",
                                         "rss_caps",
                                         "max_rwq_indirection_tables",
                                         "max_rwq_indirection_table_size",
                                         "rx_hash_function",
                                         "rx_hash_fields_mask",
                                         "supported_qp",
                                         "max_wq_type_rq",
                                         "packet_pacing_caps",
                                         "qp_rate_limit_min",
                                         "qp_rate_limit_max",
                                         "tag matching not supported",
                                         "tm_caps",
                                         "num_comp_vectors",
                                         "cq moderation caps",
                                         "port",
                                         "state",
                                         "port_cap_flags2",
                                         "bad_pkey_cntr",
                                         "qkey_viol_cntr",
                                         "sm_sl",
                                         "subnet_timeout",
                                         "init_type_reply",
                                         "phys_state"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// Returns the indentation in tabs. Eight spaces count as one tab, since web pages convert tabs to
/// spaces.
size_t indent_of(std::string_view line) {
  constexpr size_t kTab = 8;
  const std::string_view blanks = line.substr(0, line.find_first_not_of(" \t"));
  const auto tabs = static_cast<size_t>(std::ranges::count(blanks, '\t'));
  return tabs + (blanks.size() - tabs) / kTab;
}

std::optional<uint64_t> leading_number(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::string flags_yaml(uint64_t bits, std::span<const FieldName> names) {
  std::vector<std::string> words;
  for (const FieldName& name : names) {
    if ((bits & name.value) == 0) continue;
    words.emplace_back(name.text);
    bits &= ~name.value;
  }
  if (bits != 0) words.push_back(fmt::format("{:#x}", bits));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

/// Returns the name pattern of a device, such as "mlx5_%d" for "mlx5_0".
std::string pattern_of(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  return std::string(name.substr(0, end)) + "%d";
}

constexpr char kNoLine[] = "no such line";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kDevice = "hca_id:";

class Recorder {
 public:
  explicit Recorder(std::string_view dump) : rest_(dump) { next(); }

  RecordedProfile record(const std::string& source, const FurtherValues& further) {
    while (!at_end_ && !trimmed(line_).starts_with(kDevice)) skip_before_device();
    if (at_end_)
      throw std::runtime_error(
          source +
          ": there is no line 'hca_id:', so this is not the output of `ibv_devinfo -v` "
          "for a device");
    const std::string name(trimmed(trimmed(line_).substr(kDevice.size())));
    add("identity", "name", yaml_text(pattern_of(name)));
    next();
    while (!at_end_ && !trimmed(line_).starts_with(kDevice)) take_line();
    if (!gid_types_.empty()) add("gids", "types", fmt::format("[{}]", fmt::join(gid_types_, ", ")));
    if (further) {
      for (FoundValue& value : further(name)) {
        if (value.key == "hw_rev" && is_hardware_version(value.value)) continue;  // as if alone
        add(value.section, value.key, std::move(value.value), std::move(value.source));
      }
    }
    if (!value_of("device", "phys_port_cnt").empty()) add("identity", "board_id", "null", kNoLine);
    // ibv_devinfo omits the lines of these values if the values are 0.
    if (!value_of("device", "device_cap_flags_ex").empty() && values_.contains("port")) {
      for (const char* key : {"max_cq_count", "max_cq_period", "max_dm_size"})
        add("device", key, "0", kNoLine);
    }
    if (value_of("device", "max_srq") == "0") {
      for (const char* key : {"max_srq_wr", "max_srq_sge"}) add("device", key, "0", kNoLine);
    }
    recorded_.yaml = text(source);
    return std::move(recorded_);
  }

 private:
  struct Value {
    std::string key, value;
    std::string source;  // a line of the dump, or a file
  };

  std::string_view value_of(const std::string& section, std::string_view key) const {
    const auto of = values_.find(section);
    if (of == values_.end()) return {};
    const auto found = std::ranges::find(of->second, key, &Value::key);
    return found != of->second.end() ? found->value : std::string_view();
  }
  bool is_hardware_version(std::string_view quoted) const {
    return quoted == yaml_text(value_of("device", "hw_ver"));
  }

  void next() {
    if (rest_.empty()) {
      at_end_ = true;
      return;
    }
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (line_.starts_with(kByteOrderMark)) line_.remove_prefix(kByteOrderMark.size());
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++number_;
  }

  void skip_before_device() {
    if (!trimmed(line_).empty() && !line_.starts_with("#")) note_unknown();
    next();
  }

  void note_unknown() {
    recorded_.unknown.push_back(fmt::format("line {}: {}", number_, trimmed(line_)));
  }

  void add(std::string_view section, std::string_view key, std::string value) {
    add(section, key, std::move(value), std::to_string(number_));
  }
  void add(std::string_view section, std::string_view key, std::string value, std::string source) {
    for (const Value& one : values_[std::string(section)]) {
      if (one.key == key) return;  // of a second port, or already known
    }
    values_[std::string(section)].push_back(
        {std::string(key), std::move(value), std::move(source)});
  }

  /// Reads the names on the following lines that are indented more than `indent`.
  std::vector<std::string> take_names(size_t indent) {
    std::vector<std::string> names;
    while (!at_end_ && indent_of(line_) > indent && !trimmed(line_).empty()) {
      names.emplace_back(trimmed(line_));
      next();
    }
    return names;
  }

  void take_line() {
    const std::string_view text = trimmed(line_);
    const size_t indent = indent_of(line_);
    const size_t colon = text.find(':');
    const std::string_view name = trimmed(text.substr(0, colon));
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : trimmed(text.substr(colon + 1));
    if (text.empty() || text.starts_with("#")) return next();
    if (name == "transport") return take_transport(value);
    if (name.starts_with("GID[")) return take_gid(value);
    if (text == "completion_timestamp_mask not supported") {
      add("device", "completion_timestamp_mask", "0");
      return next();
    }
    if (text == "core clock not supported") {
      add("device", "hca_core_clock", "0");
      return next();
    }
    const auto* const row = std::ranges::find(kLines, name, &DumpLine::name);
    if (row != std::end(kLines)) return take_value(*row, value, indent);
    if (std::ranges::find(kLeftOut, name) != std::end(kLeftOut)) {
      recorded_.left_out.emplace_back(name);
      next();
      if (name == "raw packet caps" || name == "supported_qp") take_names(indent);
      return;
    }
    note_unknown();
    next();
    for (const std::string& below : value.empty() ? std::vector<std::string>() : take_names(indent))
      recorded_.unknown.back() += " " + below;
  }

  void take_transport(std::string_view value) {
    if (value.starts_with("InfiniBand")) {
      add("identity", "node_type", "CA");
    } else if (value.starts_with("iWARP")) {
      add("identity", "node_type", "RNIC");
    } else if (value.starts_with("unspecified")) {
      add("identity", "node_type", "UNSPECIFIED");
    } else {
      note_unknown();
    }
    next();
  }

  void take_gid(std::string_view value) {
    for (const std::string_view type : {"RoCE v1", "RoCE v2"}) {
      if (value.ends_with(type) && std::ranges::find(gid_types_, type) == gid_types_.end())
        gid_types_.emplace_back(type);
    }
    next();
  }

  void take_value(const DumpLine& row, std::string_view value, size_t indent) {
    const int line = number_;
    std::optional<std::string> read = plain_value(row, value);
    if (!read && row.form != Form::kFlagNames) {
      note_unknown();
      return next();
    }
    next();
    // The number already has the flags, so their names are skipped. The lines of a port are
    // indented by one tab more than those of the device.
    if (row.form == Form::kFlagBits) take_names(indent);
    if (row.form == Form::kNumberAndNames) take_names(indent + 2);
    if (row.form == Form::kFlagNames) read = named_flags(row, take_names(indent));
    add(row.section, row.key, *read, std::to_string(line));
  }

  static std::optional<std::string> plain_value(const DumpLine& row, std::string_view value) {
    switch (row.form) {
      case Form::kText:
        if (!row.names.empty() &&
            std::ranges::find(row.names, value, &FieldName::text) == row.names.end())
          return std::nullopt;
        return yaml_text(value);
      case Form::kNumber:
      case Form::kNumberAndNames: {
        const auto number = leading_number(value);
        if (!number) return std::nullopt;
        return value.starts_with("0x") ? fmt::format("{:#x}", *number) : std::to_string(*number);
      }
      case Form::kParens: {
        const size_t open = value.rfind('(');
        const auto number =
            open == std::string_view::npos ? std::nullopt : leading_number(value.substr(open + 1));
        if (!number) return std::nullopt;
        if (row.names.empty()) return std::to_string(*number);
        const auto named = std::ranges::find(row.names, *number, &FieldName::value);
        if (named == row.names.end()) return std::nullopt;
        return std::string(named->text);
      }
      case Form::kFlagBits: {
        const auto number = leading_number(value);
        if (!number) return std::nullopt;
        return flags_yaml(*number, row.names);
      }
      case Form::kFlagNames:
        break;
    }
    return std::nullopt;
  }

  std::string named_flags(const DumpLine& row, const std::vector<std::string>& words) {
    uint64_t bits = 0;
    for (const std::string& word : words) {
      constexpr std::string_view kUnnamed = "Unknown flags: ";
      const auto named = std::ranges::find(row.names, word, &FieldName::text);
      if (named != row.names.end()) {
        bits |= named->value;
      } else if (word.starts_with(kUnnamed)) {
        bits |= leading_number(std::string_view(word).substr(kUnnamed.size())).value_or(0);
      } else if (word != "NO SUPPORT") {
        recorded_.unknown.push_back(fmt::format("{}: {}", row.name, word));
      }
    }
    using Names = std::span<const FieldName>;
    const bool is_general = row.names.data() == kOdpGeneralWords;
    return flags_yaml(bits, is_general ? Names(kOdpGeneral) : Names(kOdpTransport));
  }

  std::string text(const std::string& source) const {
    std::string yaml = fmt::format(
        "# Recorded from {} by `rocemu profile record`. The comment after each value "
        "is its line in the output of ibv_devinfo -v, or its sysfs file.\n# Values that are "
        "missing "
        "here are those of the profile generic.\nsummary: {}\n",
        yaml_text(source), yaml_text("recorded from " + source));
    for (const char* section : {"identity", "pci", "device", "port", "gids"}) {
      const auto found = values_.find(section);
      if (found == values_.end()) continue;
      yaml += fmt::format("\n{}:\n", section);
      for (const Value& value : found->second) {
        yaml += fmt::format("  {}: {}", value.key, value.value);
        yaml += fmt::format("  # {}\n", value.source);
      }
    }
    return yaml;
  }

  std::string_view rest_, line_;
  int number_ = 0;
  bool at_end_ = false;
  std::map<std::string, std::vector<Value>> values_;
  std::vector<std::string> gid_types_;
  RecordedProfile recorded_;
};

}  // namespace

RecordedProfile record_profile(std::string_view dump, const std::string& source,
                               const FurtherValues& further) {
  return Recorder(dump).record(source, further);
}

}  // namespace rocemu::profile
