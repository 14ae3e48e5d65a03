// The section `topology` of a network file: a shape with its sizes, or a list of nodes and links.
#pragma once

#include <map>
#include <vector>

#include "emulator/network/file/field_reader.h"
#include "emulator/network/network_shapes.h"

namespace rocemu::network {

/// The nodes of the file that links and switches of the list came from.
struct ListedPlaces {
  std::map<LinkId, scenario::Place> links;
  std::map<SwitchId, scenario::Place> switches;
};

/// Reads what is special at one link: rate and delay.
void read_link(const FieldReader& reader, const scenario::Node& node, Link& link);
/// Reads what is special at one switch; `more` is a key that is allowed beside.
void read_switch(const FieldReader& reader, const scenario::Node& node, SwitchParameters& at);

Topology read_shape(const FieldReader& reader, const scenario::Node& node, const Patterns& patterns,
                    ListedPlaces& places);

}  // namespace rocemu::network
