#include "emulator/command/base/print_json.h"

#include <iostream>

namespace rocemu::command {

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace rocemu::command
