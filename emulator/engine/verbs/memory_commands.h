// Control requests about protection domains, memory regions and windows, and device memory.
#pragma once

#include "emulator/engine/fabric.h"

namespace rocemu::engine {

// Each fills the reply's body and returns 0, or the errno value that its man page names.

int alloc_pd(Fabric& fabric, ClientId client, uint32_t& handle);
int dealloc_pd(Fabric& fabric, ClientId client, uint32_t handle);
int query_pd(const Fabric& fabric, ClientId client, uint32_t handle);

int reg_mr(Fabric& fabric, ClientId client, const abi::Request::Body& in, abi::Reply::Body& out);
int rereg_mr(Fabric& fabric, ClientId client, const abi::Request::Body& in, abi::Reply::Body& out);
int dereg_mr(Fabric& fabric, ClientId client, uint32_t handle);
int query_mr(const Fabric& fabric, ClientId client, uint32_t handle, abi::Reply::Body& out);
int advise_mr(Fabric& fabric, ClientId client, const abi::Request::Body& in);

int alloc_mw(Fabric& fabric, ClientId client, const abi::Request::Body& in, abi::Reply::Body& out);
int dealloc_mw(Fabric& fabric, ClientId client, uint32_t handle);

int alloc_dm(Fabric& fabric, ClientId client, const abi::Request::Body& in, uint32_t& handle);
int free_dm(Fabric& fabric, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
