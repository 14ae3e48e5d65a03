#include "emulator/command/base/error.h"

#include <system_error>

namespace rocemu::command {

void fail_with_errno(const std::string& what, int error) {
  throw Failure(what + ": " + std::generic_category().message(error));
}

}  // namespace rocemu::command
