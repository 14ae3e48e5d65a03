// Errors that no descriptor reports: VipErrorCallback. Functions must be called with the NIC
// locked.
#pragma once

#include "vipl/objects.h"

namespace rocemu::vipl {

void report(Nic& nic, VIP_RESOURCE_CODE resource, VIP_ERROR_CODE code, Vi* vi = nullptr,
            Cq* cq = nullptr, VIP_DESCRIPTOR* descriptor = nullptr, uint32_t operation = 0);
/// Reads events of the device until there are none. Locks the NIC itself.
void read_device_events(Nic& nic);

}  // namespace rocemu::vipl
