// The words for what events tell of: those of libibverbs and librdmacm.
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/abi/control.h"
#include "emulator/abi/ucma.h"

namespace rocemu::journal {

/// "unknown" for values that have no name.
std::string_view name_of(abi::Op op);                  // "create_qp"
std::string_view name_of(abi::QpState state);          // "RTS"
std::string_view name_of(abi::WrOpcode opcode);        // "RDMA_WRITE"
std::string_view name_of(abi::WcOpcode opcode);        // "RECV"
std::string_view name_of(abi::WcStatus status);        // "RETRY_EXC_ERR"
std::string_view name_of(abi::EventType type);         // "PORT_ERR"
std::string_view name_of(abi::ucma::Command command);  // "resolve_addr"
std::string_view name_of(abi::ucma::EventType type);   // "ESTABLISHED"

}  // namespace rocemu::journal
