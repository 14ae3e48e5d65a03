#include "emulator/command/run/one_processor.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "emulator/abi/run_processors.h"
#include "emulator/command/base/error.h"
#include "emulator/os/processors.h"

namespace rocemu::command {

void stay_on_processor(int number) {
  const std::vector<int> allowed = allowed_processors();
  const std::string list = processor_list(allowed);
  if (std::ranges::find(allowed, number) == allowed.end())
    throw UsageError("run: --processor " + std::to_string(number) +
                     " is not one of the processors that may be used here: " + list);
  if (!stay_on(number)) fail_with_errno("cannot choose a processor", errno);
  setenv(abi::kProcessorsVariable, (std::to_string(number) + ":" + list).c_str(), 1);
}

}  // namespace rocemu::command
