// A program that a test starts, and that ends with the test's NIC.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rocemu::testing {

/// The result of spawn(). All descriptors are close-on-exec, so that no other child keeps one open.
struct Spawned {
  pid_t pid = -1;
  int error = 0;  // errno, if it could not be started
};

/// Starts argv[0], found in PATH, with `variables` added to the environment. The program gets the
/// descriptors `input`, `output` and `errors` as 0, 1 and 2, and `further` as 3, 4 and so on; where
/// one is -1, the program keeps this process's.
Spawned spawn(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
              int input, int output, int errors, const std::vector<int>& further = {});

/// Returns the exit status in a status from waitpid(2), or 128 plus the number of the signal that
/// killed the program.
int exit_status(int wait_status);

/// Creates a file in memory, for a child's output.
int make_memory_file();
std::string contents_of(int fd);

}  // namespace rocemu::testing
