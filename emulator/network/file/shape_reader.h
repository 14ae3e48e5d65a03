// Reads the section `topology` of a network file: a shape with its sizes, or a list of nodes and
// links.
#pragma once

#include <map>
#include <vector>

#include "emulator/network/file/field_reader.h"
#include "emulator/network/network_shapes.h"

namespace rocemu::network {

/// The YAML nodes of the links and switches in the list.
struct ListedPlaces {
  std::map<LinkId, scenario::SourceLocation> links;
  std::map<SwitchId, scenario::SourceLocation> switches;
};

/// Reads the parameters of one link: rate and delay.
void read_link(const FieldReader& reader, const scenario::Node& node, Link& link);
/// Reads the parameters of one switch; `more` is the name of an additional key that is allowed.
void read_switch(const FieldReader& reader, const scenario::Node& node, SwitchParameters& at);

Topology read_shape(const FieldReader& reader, const scenario::Node& node, const Patterns& patterns,
                    ListedPlaces& places);

}  // namespace rocemu::network
