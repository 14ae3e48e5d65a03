// Parses the YAML files of `--fabric` into a Topology. docs/fabric.md describes them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/network/network_topology.h"
#include "emulator/scenario/document.h"

namespace rocemu::network {

/// The maximum length of a network file: those of large networks list every link.
inline constexpr size_t kMaxNetworkText = size_t{16} << 20;

struct NetworkFile {
  Topology topology;
  /// Warnings, each with its location: "FILE:LINE:COLUMN: ...".
  std::vector<std::string> warnings;
};

/// An error in a network file. what() lists every problem with its location.
class NetworkFileError : public std::runtime_error {
 public:
  NetworkFileError(const std::string& text, std::vector<scenario::Problem> problems)
      : std::runtime_error(text), problems_(std::move(problems)) {}
  const std::vector<scenario::Problem>& problems() const { return problems_; }

 private:
  std::vector<scenario::Problem> problems_;
};

/// Returns the path of the network file NAME that comes with rocemu; returns `name` itself if there
/// is none.
std::string find_network_file(const std::string& name);

/// Returns the text of the network file or of the installed network with this name. If
/// `is_read_again` is true, the file is read several times, so it cannot be a pipe. Throws
/// std::runtime_error.
std::string read_network(const std::string& name, bool is_read_again);

/// Returns whether the text is probably a network file and not a scenario or a profile.
bool is_network_file(std::string_view yaml);

/// Parses the text. `name` is the file's name in messages. Throws NetworkFileError.
NetworkFile parse_network_file(const std::string& yaml, const std::string& name);

}  // namespace rocemu::network
