// The keys that select occurrences and determine when a rule acts: all keys except those of `do`
#include <fmt/format.h>

#include <algorithm>

#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Kinds;
using engine::faults::Queue;
using engine::faults::Where;

constexpr Places kWithQp = at(Where::kFrame) | at(Where::kWorkRequest) | at(Where::kRequest) |
                           at(Where::kCompletion) | at(Where::kEvent) | at(Where::kVerb) |
                           at(Where::kNow);
constexpr Places kNetwork = at(Where::kNetwork);
constexpr Places kCounted = kEverywhere & ~at(Where::kNow) & ~at(Where::kLink);
constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 31;  // IBTA vol 1, 9.7.7

void add_kinds(Reading in, const Kinds& kinds) {
  in.rule.which.kinds = in.rule.which.kinds.value_or(Kinds()) | kinds;
}

void read_kinds(Reading in, const Node& value, const Names& names) {
  for (const uint32_t kind : in.reader.name_list(value, names)) add_kinds(in, Kinds().set(kind));
}

void read_opcode(Reading in, const Node& value) {
  if (in.rule.where == Where::kWorkRequest) return read_kinds(in, value, kWrOpcodeNames);
  if (in.rule.where == Where::kCompletion) return read_kinds(in, value, kWcOpcodeNames);
  Kinds kinds;
  std::bitset<4> answers;
  const auto read = [&](const Node& item) {
    const std::string word = in.reader.text(item, "an opcode such as SEND, ACK or RC_SEND_FIRST");
    const auto found = find_opcodes(word);
    if (!found) {
      const std::vector<std::string> names = opcode_names();
      const std::vector<std::string_view> views(names.begin(), names.end());
      std::string near = NodeReader::suggestion(word, views);
      if (near.empty()) {
        near =
            "; there are groups such as SEND, WRITE, READ, ATOMIC, READ_RESPONSE, ACK, NAK, "
            "RNR_NAK, REQUEST and RESPONSE, and single opcodes such as RC_SEND_FIRST";
      }
      in.reader.fail(item, fmt::format("there is no opcode {}{}", NodeReader::found(item), near));
    }
    kinds |= found->kinds;
    answers |= found->answers;
  };
  for (const Node& item : in.reader.items(value, "an opcode or a list of them")) {
    in.reader.attempt([&] { read(item); });
  }
  auto& which = in.rule.which;
  which.kinds = which.kinds ? *which.kinds & kinds : kinds;
  which.answers = answers;
}

void read_transport(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "RC, UC, UD or XRC");
  const auto found = find_transport(word);
  if (!found) {
    in.reader.fail(value,
                   fmt::format("expected RC, UC, UD or XRC, found {}", NodeReader::found(value)));
  }
  auto& which = in.rule.which;
  which.kinds = which.kinds ? *which.kinds & *found : *found;
  which.mads = true;  // only with UD; other transports have no opcode that a MAD uses
}

/// Reads QP numbers. If they include QP 1, a rule for frames also selects MADs.
void read_qp_number(Reading in, const Node& value, engine::faults::Ranges& ranges) {
  constexpr uint64_t kGeneralServices = 1;
  ranges = in.reader.ranges(value, 0, kMax24);
  in.rule.which.mads |= std::ranges::any_of(ranges, [](const engine::faults::Range& range) {
    return range.first <= kGeneralServices && kGeneralServices <= range.last;
  });
}

std::string read_device(Reading in, const Node& value) {
  std::string name = in.reader.text(value, "the name of a device");
  if (name.empty()) in.reader.fail(value, "expected the name of a device, found nothing");
  return name;
}

void read_between(Reading in, const Node& value) {
  if (!value.is_list() || value.items.size() != 2) {
    in.reader.fail(value, fmt::format("expected two devices, such as [rocemu0, rocemu1], found {}",
                                      NodeReader::found(value)));
  }
  in.rule.which.device = read_device(in, value.items[0]);
  in.rule.which.to = read_device(in, value.items[1]);
  in.rule.which.either_way = true;
}

/// Reads the name of a program, such as `server`, or `server#2` for its second process; or a list
/// of these.
void read_process(Reading in, const Node& value) {
  constexpr size_t kLongestName = 15;  // the kernel truncates longer names: proc(5), comm
  for (const Node& item : in.reader.items(value, "a process or a list of them")) {
    std::string text = in.reader.text(item, "the name of a program, such as server or server#2");
    engine::faults::ProcessSelection selection;
    const size_t mark = text.rfind('#');
    if (mark != std::string::npos) {
      const auto number = NodeReader::parse_number(text.substr(mark + 1));
      if (!number || *number == 0 || *number > UINT32_MAX) {
        in.reader.fail(item, fmt::format("expected PROGRAM#N with N of at least 1, found {}",
                                         NodeReader::found(item)));
      }
      selection.number = static_cast<uint32_t>(*number);
      text.resize(mark);
    }
    if (text.empty()) {
      in.reader.fail(item, "expected the name of a program, found nothing");
    }
    selection.program = text.substr(0, kLongestName);
    in.rule.which.processes.push_back(std::move(selection));
  }
}

void read_queue(Reading in, const Node& value) {
  const std::string word = in.reader.text(value, "send or recv");
  if (word == "send") {
    in.rule.which.queue = Queue::kSend;
  } else if (word == "recv") {
    in.rule.which.queue = Queue::kReceive;
  } else {
    in.reader.fail(value, fmt::format("expected send or recv, found {}", NodeReader::found(value)));
  }
}

template <engine::NetworkElement::Kind kKind>
void read_network_element(Reading in, const Node& value) {
  if (in.rule.which.network)
    in.reader.fail(value, "a rule can name only one of link, port, switch and host");
  std::string name = in.reader.text(value, "a name from the network file");
  if (name.empty()) in.reader.fail(value, "expected a name from the network file, found nothing");
  in.rule.which.network = engine::NetworkElement{kKind, std::move(name)};
}

constexpr Key kSelectionKeys[] = {
    {"device", kEverywhere & ~kOnWire,
     [](Reading in, const Node& v) { in.rule.which.device = read_device(in, v); }},
    {"from", kOnWire, [](Reading in, const Node& v) { in.rule.which.device = read_device(in, v); }},
    {"to", kOnWire, [](Reading in, const Node& v) { in.rule.which.to = read_device(in, v); }},
    {"between", kOnWire, read_between},
    {"process", kEverywhere & ~at(Where::kCm) & ~at(Where::kLink) & ~at(Where::kNow), read_process},
    {"qp", kWithQp,
     [](Reading in, const Node& v) { in.rule.which.qp = in.reader.ranges(v, 1, kMax24); }},
    {"qp_num", kWithQp,
     [](Reading in, const Node& v) { read_qp_number(in, v, in.rule.which.qp_num); }},
    {"dest_qp", at(Where::kFrame) | at(Where::kWorkRequest),
     [](Reading in, const Node& v) { read_qp_number(in, v, in.rule.which.dest_qp); }},
    {"transport", at(Where::kFrame), read_transport},
    {"opcode",
     at(Where::kFrame) | at(Where::kRequest) | at(Where::kWorkRequest) | at(Where::kCompletion),
     read_opcode},
    {"psn", at(Where::kFrame) | at(Where::kRequest),
     [](Reading in, const Node& v) { in.rule.which.psn = in.reader.ranges(v, 0, kMax24); }},
    {"psn_num", at(Where::kFrame) | at(Where::kRequest),
     [](Reading in, const Node& v) { in.rule.which.psn_num = in.reader.ranges(v, 0, kMax24); }},
    {"message",
     at(Where::kFrame) | at(Where::kRequest) | at(Where::kWorkRequest) | at(Where::kCompletion),
     [](Reading in, const Node& v) { in.rule.which.message = in.reader.ranges(v, 1, UINT32_MAX); }},
    {"size",
     at(Where::kFrame) | at(Where::kRequest) | at(Where::kWorkRequest) | at(Where::kCompletion),
     [](Reading in, const Node& v) {
       const bool of_packet = in.rule.where == Where::kFrame || in.rule.where == Where::kRequest;
       in.rule.which.size = in.reader.ranges(v, 0, of_packet ? kMaxPayload : kMaxMessageBytes);
     }},
    {"wr_id", at(Where::kWorkRequest) | at(Where::kCompletion),
     [](Reading in, const Node& v) { in.rule.which.wr_id = in.reader.ranges(v, 0, kAny); }},
    {"queue", at(Where::kCompletion), read_queue},
    {"status", at(Where::kCompletion),
     [](Reading in, const Node& v) {
       std::bitset<32> statuses;
       for (const uint32_t status : in.reader.name_list(v, kWcStatusNames)) statuses.set(status);
       in.rule.which.statuses = statuses;
     }},
    {"event", at(Where::kEvent) | at(Where::kCmEvent),
     [](Reading in, const Node& v) {
       read_kinds(in, v, in.rule.where == Where::kEvent ? kEventNames : kCmEventNames);
     }},
    {"mad", at(Where::kCm), [](Reading in, const Node& v) { read_kinds(in, v, kCmMessageNames); }},
    {"verb", at(Where::kVerb), [](Reading in, const Node& v) { read_kinds(in, v, verb_names()); }},
    {"link", kNetwork, read_network_element<engine::NetworkElement::Kind::kLink>},
    {"port", kNetwork, read_network_element<engine::NetworkElement::Kind::kPort>},
    {"switch", kNetwork, read_network_element<engine::NetworkElement::Kind::kSwitch>},
    {"host", kNetwork, read_network_element<engine::NetworkElement::Kind::kHost>},

    {"nth", kCounted,
     [](Reading in, const Node& v) { in.rule.when.nth = in.reader.ranges(v, 1, kAny); }},
    {"nth_total", kCounted,
     [](Reading in, const Node& v) { in.rule.when.nth_total = in.reader.ranges(v, 1, kAny); }},
    {"every", kCounted,
     [](Reading in, const Node& v) { in.rule.when.every = in.reader.number(v, 1, kAny); }},
    {"burst", kCounted,
     [](Reading in, const Node& v) { in.rule.when.burst = in.reader.number(v, 1, kAny); }},
    {"after", kCounted | at(Where::kLink) | kNetwork,
     [](Reading in, const Node& v) { in.rule.when.after = read_time(in, v); }},
    {"count", kCounted,
     [](Reading in, const Node& v) { in.rule.when.count = in.reader.number(v, 1, kAny); }},
    {"total", kCounted,
     [](Reading in, const Node& v) { in.rule.when.total = in.reader.number(v, 1, kAny); }},
    {"probability", kCounted,
     [](Reading in, const Node& v) { in.rule.when.probability = in.reader.probability(v); }},
    {"for", kCounted | at(Where::kLink) | kNetwork,
     [](Reading in, const Node& v) { in.rule.when.lifetime = read_time(in, v); }},
};

}  // namespace

std::span<const Key> selection_keys() {
  return kSelectionKeys;
}

}  // namespace rocemu::scenario
