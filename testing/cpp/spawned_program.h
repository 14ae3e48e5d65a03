// A program that a test starts, and that ends with the test's NIC.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rocemu::testing {

/// With close-on-exec everywhere else, so that no other child keeps a descriptor open.
struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno, if it could not be started
};

/// Starts argv[0], found in PATH, with `variables` beside the environment; descriptors of -1 are
/// left as they are. The program gets the descriptors `further` as 3, 4 and so on.
Spawned spawn(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
              int input, int output, int errors, const std::vector<int>& further = {});

/// The exit status, or 128 and the signal's number.
int exit_status(int wait_status);

/// A file in memory, for what a child prints.
int make_memory_file();
std::string contents_of(int fd);

}  // namespace rocemu::testing
