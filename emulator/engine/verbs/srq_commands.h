// Control requests about shared receive queues.
#pragma once

#include "emulator/engine/fabric.h"

namespace rocemu::engine {

// Each fills the reply's body and returns 0, or the errno value that its man page names.

int create_srq(Fabric& fabric, ClientId client, const abi::Request::Body& in,
               abi::Reply::Body& out);
int modify_srq(Fabric& fabric, ClientId client, const abi::Request::Body& in);
int query_srq(Fabric& fabric, ClientId client, uint32_t handle, abi::Reply::Body& out);
int destroy_srq(Fabric& fabric, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
