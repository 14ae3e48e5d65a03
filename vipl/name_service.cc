// VipNSInit and related functions. The name service is the machine's, getaddrinfo(3).
#include <netdb.h>

#include <cstring>
#include <memory>

#include "vipl/objects.h"

namespace rocemu::vipl {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

VIP_RETURN set_open(VIP_NIC_HANDLE handle, bool open) {
  return guarded([&] {
    Access<Nic> nic(nics, handle);
    if (!nic) return VIP_INVALID_PARAMETER;
    nic->names_open = open;
    return VIP_SUCCESS;
  });
}

/// Returns the NIC's address, and stores in `open` whether VipNSInit has been called for the NIC.
/// Returns an empty text if the handle has no NIC.
std::string own_address(VIP_NIC_HANDLE handle, bool* open) {
  Access<Nic> nic(nics, handle);
  if (!nic) return "";
  *open = nic->names_open;
  return nic->address;
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID) {
  return set_open(NicHandle, true);
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
  return set_open(NicHandle, false);
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address,
                              VIP_ULONG NameIndex) {
  return guarded([&] {
    bool open = false;
    const std::string own = own_address(NicHandle, &open);
    if (own.empty() || Name == nullptr || Address == nullptr) return VIP_INVALID_PARAMETER;
    if (!open) return VIP_ERROR_NAMESERVICE;
    addrinfo hints{};
    hints.ai_family = own.size() == 4 ? AF_INET : AF_INET6;  // the NIC reaches no other
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(Name, nullptr, &hints, &found) != 0) return VIP_ERROR_NAMESERVICE;
    const AddressList list(found, &::freeaddrinfo);
    const addrinfo* entry = list.get();
    for (VIP_ULONG i = 0; i < NameIndex && entry != nullptr; ++i) entry = entry->ai_next;
    if (entry == nullptr) return VIP_ERROR_NAMESERVICE;
    write_address({host_of(entry->ai_addr), ""}, Address);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name,
                              VIP_ULONG* NameLen) {
  return guarded([&] {
    bool open = false;
    const std::string own = own_address(NicHandle, &open);
    const auto address = read_address(Address);
    if (own.empty() || !address || Name == nullptr || NameLen == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    if (!open) return VIP_ERROR_NAMESERVICE;
    const sockaddr_storage storage = socket_address(address->host, 0);
    const socklen_t length = address->host.size() == 4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char name[NI_MAXHOST];
    if (::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, name, sizeof name,
                      nullptr, 0, NI_NAMEREQD) != 0) {
      return VIP_ERROR_NAMESERVICE;
    }
    const VIP_ULONG room = *NameLen;
    *NameLen = std::strlen(name) + 1;
    if (room < *NameLen) return VIP_ERROR_RESOURCE;
    std::memcpy(Name, name, *NameLen);
    return VIP_SUCCESS;
  });
}
