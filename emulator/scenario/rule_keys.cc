#include "emulator/scenario/rule_keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::scenario {
namespace {

std::vector<std::string_view> names_at(std::span<const Key> keys, Places place) {
  std::vector<std::string_view> names;
  for (const Key& key : keys) {
    if ((key.places & place) != 0) names.push_back(key.name);
  }
  return names;
}

/// Returns the key with this name. Fails if the rule's place does not have the key.
const Key& find_key(Reading in, const Node& name, std::span<const Key> keys,
                    std::span<const std::string_view> others) {
  const std::string word = in.reader.text(name, "a key");
  const Places place = at(in.rule.where);
  const Key* elsewhere = nullptr;
  for (const Key& key : keys) {
    if (key.name != word) continue;
    if ((key.places & place) != 0) return key;
    elsewhere = &key;
  }
  std::vector<std::string_view> known = names_at(keys, place);
  known.insert(known.end(), others.begin(), others.end());
  const std::string_view on = kPlaceNames.names[static_cast<size_t>(in.rule.where)].text;
  if (elsewhere != nullptr && elsewhere->places != 0) {
    std::vector<std::string_view> places;
    for (const Name& other : kPlaceNames.names) {
      if ((elsewhere->places >> other.value & 1u) != 0) places.push_back(other.text);
    }
    in.reader.fail(
        name, fmt::format("'{}' cannot be used with 'on: {}', only with {}; the keys here are {}",
                          word, on, listing(places), listing(known)));
  }
  const std::string near = NodeReader::suggestion(word, known);
  in.reader.fail(name, fmt::format("there is no {} for 'on: {}'{}", NodeReader::found(name), on,
                                   near.empty() ? "; there are " + listing(known) : near));
}

}  // namespace

engine::Duration read_time(Reading in, const Node& value) {
  const engine::Duration time = in.reader.duration(value);
  if (time == engine::Duration{}) in.reader.fail(value, "the time is 0; leave the key out instead");
  return time;
}

void read_keys(Reading in, const Node& mapping, std::span<const Key> keys,
               std::span<const std::string_view> others, std::set<std::string>& seen) {
  const auto read = [&](const Node& name, const Node& value) {
    const std::string word = in.reader.text(name, "a key");
    if (std::ranges::find(others, word) != others.end()) return;
    const Key& key = find_key(in, name, keys, others);
    if (!seen.insert(word).second) in.reader.fail(name, fmt::format("'{}' is given twice", word));
    key.read(in, value);
  };
  for (const Entry& entry : mapping.entries) {
    in.reader.attempt([&] { read(entry.key, entry.value); });
  }
}

void read_flag(Reading in, const Node& word, std::set<std::string>& seen) {
  const Key& key = find_key(in, word, effect_keys(), {});
  if (!seen.insert(word.text).second) {
    in.reader.fail(word, fmt::format("'{}' is given twice", word.text));
  }
  key.read(in, Node::of(Node::Kind::kScalar, word.location, "true"));
}

}  // namespace rocemu::scenario
