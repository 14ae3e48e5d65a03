// Address handles (IBTA vol 1, 10.2.2.2).
#pragma once

#include "emulator/abi/control.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"

namespace rocemu::engine {

struct AddressHandle {
  AddressHandle(AhId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}
  AhId id;
  ClientId client;
  PdId pd;
  abi::AhAttr attr{};
  Links<AddressHandle> of_client;
};

}  // namespace rocemu::engine
