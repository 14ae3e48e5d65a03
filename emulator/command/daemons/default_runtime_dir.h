// Finds and makes the places of emulator/abi/runtime_dir.h, and trusts none that others could
// have put there.
#pragma once

#include <string>
#include <vector>

namespace rocemu::command {

/// BASE, which need not exist.
std::string base_dir();

/// BASE of private daemons: base_dir(), or a directory in memory rather than one in /tmp.
std::string private_base_dir();

/// Why BASE must not be used (another user's, a symbolic link, open to others), with what to do
/// about it; empty if it is fine or does not exist.
std::string distrust_of_base(const std::string& base);

/// Throws Failure if there is such a distrust.
void require_trust(const std::string& base);

/// Makes BASE if it is missing. Throws Failure if that fails or BASE is not to be trusted.
void create_base(const std::string& base);

/// BASE/shared.
std::string shared_dir();

/// A new name BASE/run-PID-RANDOM; the daemon makes the directory.
std::string new_private_dir(const std::string& base);

/// Directories run-* that are there in any BASE, sorted; their daemons may be dead.
std::vector<std::string> private_dirs();

/// Removes the DIR that a daemon left behind because it was killed. Returns whether there was one.
bool remove_remains(const std::string& dir);

/// Removes BASE unless something is in it.
void remove_empty_base(const std::string& base);

/// Returns whether the names of the sockets below DIR are short enough for a socket address.
bool fits_socket_address(const std::string& dir);

}  // namespace rocemu::command
