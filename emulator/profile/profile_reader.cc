#include "emulator/profile/profile_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <type_traits>

#include "emulator/abi/send_opcodes.h"
#include "emulator/engine/base/limits.h"
#include "emulator/profile/fields.h"
#include "emulator/scenario/node_reader.h"

namespace rocemu::profile {
namespace {

using engine::DeviceProfile;
using scenario::Node;
using scenario::NodeReader;
using Names = std::span<const FieldName>;

std::vector<std::string_view> texts_of(Names names) {
  std::vector<std::string_view> texts;
  for (const FieldName& name : names) texts.push_back(name.text);
  return texts;
}

/// Reads each key of a profile from the document, if the document has it.
class Reader {
 public:
  Reader(const NodeReader& reader, const Node& root) : reader_(reader), root_(root) {}

  template <class T>
  void number(std::string_view section, std::string_view key, T& value) {
    read(section, key, [&](const Node& node) {
      value = static_cast<T>(reader_.number(node, 0, std::numeric_limits<T>::max()));
    });
  }
  void text(std::string_view section, std::string_view key, std::string& value) {
    read(section, key, [&](const Node& node) {
      value = node.is_nothing() ? "" : reader_.text(node, "one line of text");
    });
  }
  template <size_t N>
  void text(std::string_view section, std::string_view key, char (&value)[N]) {
    read(section, key, [&](const Node& node) {
      const std::string given = node.is_nothing() ? "" : reader_.text(node, "one line of text");
      if (given.size() >= N)
        reader_.fail(node, fmt::format("expected at most {} characters", N - 1));
      std::memset(value, 0, N);
      std::memcpy(value, given.data(), given.size());
    });
  }
  template <class T>
  void name(std::string_view section, std::string_view key, T& value, Names names) {
    read(section, key, [&](const Node& node) { value = static_cast<T>(value_of(node, names)); });
  }
  template <class T>
  void names(std::string_view section, std::string_view key, std::vector<T>& values, Names names) {
    read(section, key, [&](const Node& node) {
      values.clear();
      for (const Node& item : reader_.items(node, "a list of names"))
        values.push_back(static_cast<T>(value_of(item, names)));
    });
  }
  template <class T>
  void bits(std::string_view section, std::string_view key, T& value, Names names) {
    read(section, key, [&](const Node& node) {
      uint64_t all = 0;
      if (!node.is_list()) reader_.fail(node, "expected a list of names, such as [RC, UD]");
      for (const Node& item : node.items) {
        const auto number = item.is_scalar() ? NodeReader::parse_number(item.text) : std::nullopt;
        all |= number ? *number : value_of(item, names);
      }
      value = static_cast<T>(all);
    });
  }
  void error(std::string_view section, std::string_view key, int32_t& value,
             std::string_view word_for_0) {
    read(section, key, [&](const Node& node) { value = error_of(node, word_for_0); });
  }
  void verbs(std::string_view section, std::map<abi::Op, int32_t>& refused) {
    const Node* const mapping = section_node(section);
    if (mapping == nullptr) return;
    for (const scenario::Entry& entry : mapping->entries) {
      reader_.attempt([&] {
        const std::string verb = reader_.text(entry.key, "the name of a verb");
        const auto* const row =
            std::ranges::find(abi::operations::kRows, verb, &abi::OperationInfo::name);
        if (row == std::end(abi::operations::kRows))
          reader_.fail(entry.key,
                       fmt::format("there is no verb '{}'; use a name such as alloc_mw", verb));
        refused[row->op] = error_of(entry.value, "");
      });
    }
  }

  /// Reports each key of the document that does not exist in profiles.
  void check_keys() const {
    std::vector<std::string_view> sections;
    for (const auto& [section, keys] : known_) {
      if (!section.empty()) sections.push_back(section);
    }
    sections.push_back("verbs");
    for (const std::string_view key : known_.at("")) sections.push_back(key);
    for (const scenario::Entry& entry : root_.entries) {
      const std::string& name = entry.key.text;
      if (name == "verbs" || known_.at("").contains(name)) continue;
      const auto found = known_.find(name);
      if (found == known_.end()) {
        reader_.complain(entry.key, fmt::format("a profile has no key '{}'; its keys are {}", name,
                                                scenario::listing(sections)));
        continue;
      }
      for (const scenario::Entry& inner : entry.value.entries) {
        if (found->second.contains(inner.key.text)) continue;
        const std::vector<std::string_view> keys(found->second.begin(), found->second.end());
        const std::string near = NodeReader::suggestion(inner.key.text, keys);
        reader_.complain(inner.key,
                         fmt::format("'{}' has no '{}'{}", name, inner.key.text,
                                     near.empty() ? "; it has " + scenario::listing(keys) : near));
      }
    }
  }

  /// Returns the value of a key, as the place of an error that involves two keys; the whole
  /// document if it lacks the key.
  const Node& node_of(std::string_view section, std::string_view key) const {
    const Node* const mapping = section_node(section);
    const Node* const node = mapping != nullptr ? mapping->find(key) : nullptr;
    return node != nullptr ? *node : root_;
  }
  bool has(std::string_view section, std::string_view key) const {
    return &node_of(section, key) != &root_;
  }

 private:
  const Node* section_node(std::string_view section) const {
    return section.empty() ? &root_ : root_.find(section);
  }

  template <class Read>
  void read(std::string_view section, std::string_view key, Read take) {
    known_[section].insert(key);
    const Node* const mapping = section_node(section);
    if (mapping == nullptr) return;
    if (!mapping->is_mapping()) {
      if (told_.insert(section).second)
        reader_.complain(*mapping, fmt::format("'{}' must be a mapping of keys to values",
                                               section.empty() ? "a profile" : section));
      return;
    }
    const Node* const node = mapping->find(key);
    if (node != nullptr) reader_.attempt([&] { take(*node); });
  }

  uint64_t value_of(const Node& node, Names names) const {
    const std::string text = reader_.text(node, "a name");
    const auto found = std::ranges::find(names, text, &FieldName::text);
    if (found == names.end()) {
      const std::vector<std::string_view> known = texts_of(names);
      const std::string near = NodeReader::suggestion(text, known);
      reader_.fail(node, fmt::format("'{}' is not one of the allowed names{}", text,
                                     near.empty() ? "; use " + scenario::listing(known) : near));
    }
    return found->value;
  }

  int32_t error_of(const Node& node, std::string_view word_for_0) const {
    std::string text = reader_.text(node, "the name of an errno value");
    if (!word_for_0.empty() && text == word_for_0 && word_for_0 == "untouched") return 0;
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.erase(0, 1);
    const auto number = scenario::errno_names().find(text);
    if (!number)
      reader_.fail(node,
                   fmt::format("there is no errno value '{}'; use a name such as EINVAL", text));
    return is_negative ? -static_cast<int32_t>(*number) : static_cast<int32_t>(*number);
  }

  const NodeReader& reader_;
  const Node& root_;
  std::map<std::string_view, std::set<std::string_view>> known_;
  std::set<std::string_view> told_;
};

constexpr uint32_t kAtomics = abi::opcodes_where(&abi::SendOpcode::is_atomic);
constexpr uint32_t kXrcFlag = 1u << 20;
constexpr size_t kMaxPattern = 40;
/// The maximum numbers of GID table entries and ports. Each of them has files in sysfs, and no
/// known NIC has more.
constexpr uint32_t kMaxGidTable = 1024, kMaxPorts = 4;

/// Returns whether the text can be the name of a file in sysfs: letters, digits, '_', '-' and '.',
/// not starting with '.'.
bool is_name(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return (std::isalnum(c) != 0 && c < 0x80) || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxPattern && text[0] != '.' &&
         std::ranges::all_of(text, allowed);
}

/// Returns whether the text is a valid name after its "%d" has been replaced by a number.
bool is_pattern(const std::string& text) {
  const size_t at = text.find("%d");
  return at != std::string::npos && is_name(text.substr(0, at) + "0" + text.substr(at + 2));
}

/// Reports values that contradict each other, or that exceed rocemu's limits.
void check_profile(const NodeReader& reader, const Reader& fields, const DeviceProfile& p) {
  const auto require = [&](bool right, std::string_view section, std::string_view key,
                           const std::string& message) {
    if (!right) reader.complain(fields.node_of(section, key), message);
  };
  const auto at_most = [&](uint64_t value, uint64_t most, std::string_view section,
                           std::string_view key) {
    require(value <= most, section, key,
            fmt::format("{} {} is more than rocemu's limit, {}", key, value, most));
  };
  at_most(p.attr.max_inline_data, engine::kMaxInlineData, "qp", "max_inline_data");
  at_most(p.attr.max_sge, engine::kMaxSge, "device", "max_sge");
  at_most(p.attr.max_srq_sge, engine::kMaxSge, "device", "max_srq_sge");
  at_most(p.qp.max_send_sge, engine::kMaxSge, "qp", "max_send_sge");
  at_most(p.qp.max_recv_sge, engine::kMaxSge, "qp", "max_recv_sge");
  at_most(p.qp.max_send_wr, engine::kMaxQpWr, "qp", "max_send_wr");
  at_most(p.qp.max_recv_wr, engine::kMaxQpWr, "qp", "max_recv_wr");
  require(p.qp.least_inline <= p.attr.max_inline_data, "qp", "least_inline",
          fmt::format("least_inline {} is more than max_inline_data {}", p.qp.least_inline,
                      p.attr.max_inline_data));
  for (const auto& [key, most] : {std::pair("max_send_sge", p.qp.max_send_sge),
                                  std::pair("max_recv_sge", p.qp.max_recv_sge)}) {
    require(most == 0 || p.attr.max_sge <= most, "qp", key,
            fmt::format("{} {} is less than max_sge {}; max_sge is the smaller of max_send_sge "
                        "and max_recv_sge",
                        key, most, p.attr.max_sge));
  }
  require(p.attr.phys_port_cnt >= 1 && p.attr.phys_port_cnt <= kMaxPorts, "device", "phys_port_cnt",
          fmt::format("a device has 1 to {} ports", kMaxPorts));
  at_most(p.port.gid_tbl_len, kMaxGidTable, "port", "gid_tbl_len");
  require(p.gid_types.size() < 2 || (p.gid_types.size() == 2 && p.gid_types[0] != p.gid_types[1]),
          "gids", "types", "each type of GID is allowed only once");
  require(static_cast<uint32_t>(p.active_mtu) <= p.port.max_mtu, "port", "active_mtu",
          "active_mtu is larger than max_mtu");
  require(p.port.gid_tbl_len >= p.gid_types.size(), "port", "gid_tbl_len",
          fmt::format("the types of 'gids' need {} entries of the GID table, but gid_tbl_len is {}",
                      p.gid_types.size(), p.port.gid_tbl_len));
  require(p.port.max_msg_sz >= 1, "port", "max_msg_sz", "max_msg_sz must be at least 1");
  require((p.sends.late_failures & ~p.sends.opcodes) == 0, "post", "late_failures",
          "each opcode in 'late_failures' must be in 'opcodes', too");
  const bool lists_opcodes = fields.has("post", "opcodes");
  require(p.attr.atomic_cap != 0 || !lists_opcodes || (p.sends.opcodes & kAtomics) == 0, "post",
          "opcodes", "'opcodes' has atomics, but atomic_cap is NONE");
  constexpr uint64_t kXrcTypes =
      field_names::bit_of(abi::QpType::kXrcSend) | field_names::bit_of(abi::QpType::kXrcRecv);
  require((p.attr.device_cap_flags & kXrcFlag) != 0 || !fields.has("qp", "types") ||
              (p.qp.types & kXrcTypes) == 0,
          "qp", "types", "'types' has XRC QPs, but device_cap_flags does not have XRC");
  require(is_pattern(p.identity.name), "identity", "name",
          fmt::format("'{}' is not a pattern for names such as mlx5_%d; use letters, digits, '_', "
                      "'-' and '.', with no '.' at the beginning",
                      p.identity.name));
  for (const auto& [key, text] :
       {std::pair("driver", &p.identity.driver), std::pair("module", &p.identity.module)}) {
    require(text->empty() || is_name(*text), "identity", key,
            fmt::format("'{}' is not the name of a driver or module", *text));
  }
}

/// Sets the members of the profile that follow from other members.
void derive(const Reader& fields, DeviceProfile& p) {
  if (p.attr.atomic_cap == 0) p.sends.opcodes &= ~kAtomics;
  if ((p.attr.device_cap_flags & kXrcFlag) == 0) {
    p.qp.types &= ~static_cast<uint32_t>(field_names::bit_of(abi::QpType::kXrcSend) |
                                         field_names::bit_of(abi::QpType::kXrcRecv));
  }
  if (!fields.has("device", "device_cap_flags_ex"))
    p.attr.device_cap_flags_ex = p.attr.device_cap_flags;
  // A device supports ATOMIC WRITE and FLUSH only if these capability flags say so.
  for (const abi::SendOpcode& row : abi::kSendOpcodes) {
    if (row.capabilities != 0 && (p.attr.device_cap_flags_ex & row.capabilities) == 0)
      p.sends.opcodes &= ~abi::opcode_bit(row.opcode);
  }
  p.posts.refused_opcodes = ~p.sends.opcodes;
  if (p.posts.no_inline_room == 0) p.posts.no_inline_room = 1;
}

}  // namespace

std::shared_ptr<const DeviceProfile> parse_profile(std::string_view yaml, const std::string& name,
                                                   const std::string& file) {
  std::vector<scenario::Problem> problems;
  const Node root = scenario::parse_document(yaml, problems);
  auto profile = std::make_shared<DeviceProfile>(*engine::generic_profile());
  profile->name = name;
  profile->summary.clear();
  if (problems.empty()) {
    const NodeReader reader(problems);
    try {
      Reader fields(reader, root);
      visit_fields(*profile, fields);
      if (root.is_mapping()) fields.check_keys();
      if (problems.empty()) check_profile(reader, fields, *profile);
      if (problems.empty()) derive(fields, *profile);
    } catch (const NodeReader::TooManyProblems&) {
    }
  }
  if (problems.empty()) return profile;
  std::string text;
  for (const scenario::Problem& problem : problems)
    text += (text.empty() ? "" : "\n") + scenario::describe(problem, file, yaml);
  throw ProfileError(text, std::move(problems));
}

bool is_profile(std::string_view yaml) {
  std::vector<scenario::Problem> problems;
  const Node root = scenario::parse_document(yaml, problems);
  constexpr std::string_view kSections[] = {"summary", "identity", "pci",  "device", "port",
                                            "gids",    "qp",       "post", "mr",     "verbs"};
  return root.is_mapping() && root.find("rules") == nullptr &&
         std::ranges::any_of(
             kSections, [&](std::string_view section) { return root.find(section) != nullptr; });
}

}  // namespace rocemu::profile
