// Reads the section `topology` of a network file. It is a usual shape with its numbers, or a list
// of nodes and links.
#pragma once

#include <map>
#include <vector>

#include "emulator/network/file/field_reader.h"
#include "emulator/network/network_shapes.h"

namespace rocemu::network {

/// The locations in the file of the links and switches that are listed one by one.
struct ListedPlaces {
  std::map<LinkId, scenario::SourceLocation> links;
  std::map<SwitchId, scenario::SourceLocation> switches;
};

/// Reads the parameters of one link: its rate and delay.
void read_link(const FieldReader& reader, const scenario::Node& node, Link& link);
/// Reads the parameters of one switch.
void read_switch(const FieldReader& reader, const scenario::Node& node, SwitchParameters& at);

Topology read_shape(const FieldReader& reader, const scenario::Node& node, const Patterns& patterns,
                    ListedPlaces& places);

}  // namespace rocemu::network
