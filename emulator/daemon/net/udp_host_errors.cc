#include "emulator/daemon/net/udp_host_errors.h"

#include <fstream>
#include <sstream>
#include <string>

namespace rocemu::daemon {
namespace {

void add(UdpHostErrors& errors, const std::string& name, uint64_t value) {
  if (name == "InErrors") errors.receive += value;
  if (name == "InCsumErrors") errors.checksum += value;
}

}  // namespace

UdpHostErrors UdpHostErrors::now() {
  UdpHostErrors errors;
  // The file has pairs of lines that begin with the protocol: the first line has names, and the
  // second has values.
  std::ifstream v4("/proc/net/snmp");
  for (std::string names, values; std::getline(v4, names) && std::getline(v4, values);) {
    std::istringstream name_words(names), value_words(values);
    std::string name, value;
    name_words >> name;
    value_words >> value;
    if (name != "Udp:") continue;
    for (uint64_t number; name_words >> name && value_words >> number;) add(errors, name, number);
  }
  // Each line of the file has a name and a value.
  std::ifstream v6("/proc/net/snmp6");
  uint64_t number;
  for (std::string name; v6 >> name >> number;) {
    if (name.starts_with("Udp6")) add(errors, name.substr(4), number);
  }
  return errors;
}

}  // namespace rocemu::daemon
