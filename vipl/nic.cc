// VipOpenNic, VipCloseNic, VipQueryNic, VipQuerySystemManagementInfo.
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "vipl/completion.h"
#include "vipl/connection.h"
#include "vipl/handlers.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {

Handles<Nic> nics(1);

Nic::~Nic() {
  for (const int fd : {epoll_fd, jobs_fd, stop_fd}) {
    if (fd >= 0) ::close(fd);
  }
  if (channel != nullptr) rdma_destroy_event_channel(channel);
  if (context != nullptr) ibv_close_device(context);
}

namespace {

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  int count() const { return list_ == nullptr ? 0 : count_; }
  ibv_device* operator[](int i) const { return list_[i]; }

 private:
  int count_ = 0;
  ibv_device** list_;
};

/// Parses "VINIC1", "nic1" or "1", the names that VI providers gave their NICs.
std::optional<int> number_of(const char* name) {
  for (const char* prefix : {"VINIC", "nic"}) {
    const size_t length = std::strlen(prefix);
    if (::strncasecmp(name, prefix, length) != 0) continue;
    name += length;
    break;
  }
  int number = 0;
  for (; *name != '\0'; ++name) {
    constexpr int kMax = 10'000;
    if (*name < '0' || *name > '9' || number > kMax) return std::nullopt;
    number = 10 * number + (*name - '0');
  }
  return number;
}

ibv_device* find_device(const DeviceList& devices, const char* name) {
  for (int i = 0; i < devices.count(); ++i) {
    if (std::strcmp(ibv_get_device_name(devices[i]), name) == 0) return devices[i];
  }
  const auto number = number_of(name);
  return number && *number < devices.count() ? devices[*number] : nullptr;
}

/// Returns the device's IP address according to its GIDs: an IPv4 address if there is one. Returns
/// an empty text if there is none.
std::string address_of(ibv_context* context) {
  constexpr uint8_t kMapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  ibv_port_attr port{};
  if (ibv_query_port(context, kPort, &port) != 0) return "";
  std::string found;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(context, kPort, i, &gid) != 0) break;
    const auto* bytes = reinterpret_cast<const char*>(gid.raw);
    if (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0) return std::string(bytes + 12, 4);
    const bool empty =
        std::all_of(std::begin(gid.raw), std::end(gid.raw), [](uint8_t byte) { return byte == 0; });
    const bool link_local = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
    if (!empty && !link_local && found.empty()) found.assign(bytes, 16);
  }
  return found;
}

void end_threads(Nic& nic, Lock& lock) {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(nic.stop_fd, &one, sizeof one);
  written = ::write(nic.jobs_fd, &one, sizeof one);
  nic.changed.notify_all();
  const bool from_handler = std::this_thread::get_id() == nic.handler_thread.get_id();
  lock.unlock();
  nic.event_thread.join();
  if (from_handler) {
    nic.handler_thread.detach();
  } else {
    nic.handler_thread.join();
  }
  lock.lock();
  nic.changed.wait(lock, [&] { return nic.peer_threads == 0; });
}

template <class T>
std::vector<std::shared_ptr<T>> take_all(Handles<T>& handles, const Nic& nic) {
  std::vector<std::shared_ptr<T>> found;
  for (const auto& object : handles.all()) {
    if (object->nic.get() != &nic) continue;
    handles.remove(object->handle);
    found.push_back(object);
  }
  return found;
}

/// Destroys all objects that the program did not destroy.
void release_everything(Nic& nic) {
  for (const auto& request : take_all(requests, nic)) request->dead = true;
  while (!nic.connections.empty()) {
    const auto connection = nic.connections.begin()->second;
    rdma_disconnect(connection->id);
    destroy_connection(nic, *connection);
  }
  for (const auto& [port, listener] : nic.listeners) rdma_destroy_id(listener.id);
  nic.listeners.clear();
  nic.unclaimed.clear();
  for (const auto& vi : take_all(vis, nic)) {
    vi->dead = true;
    destroy_qp(*vi);
    for (WorkQueue* queue : {&vi->send, &vi->recv}) {
      if (!queue->cq->visible) close_cq(*queue->cq);
    }
  }
  for (const auto& cq : take_all(cqs, nic)) close_cq(*cq);
  for (const auto& [handle, region] : nic.regions) ibv_dereg_mr(region.mr);
  nic.regions.clear();
  for (const auto& ptag : take_all(ptags, nic)) {
    ptag->dead = true;
    ibv_dealloc_pd(ptag->pd);
  }
}

void close_nic(Nic& nic, Lock& lock) {
  nic.dead = true;
  nics.remove(nic.handle);
  end_threads(nic, lock);
  release_everything(nic);
  nic.jobs.clear();
  nic.changed.notify_all();
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle) {
  return guarded([&] {
    if (DeviceName == nullptr || NicHandle == nullptr) return VIP_INVALID_PARAMETER;
    const DeviceList devices;
    ibv_device* device = find_device(devices, DeviceName);
    if (device == nullptr) return VIP_INVALID_PARAMETER;
    const auto nic = std::make_shared<Nic>();
    nic->context = ibv_open_device(device);
    if (nic->context == nullptr || ibv_query_device(nic->context, &nic->device) != 0) {
      return VIP_ERROR_RESOURCE;
    }
    nic->name = ibv_get_device_name(device);
    nic->address = address_of(nic->context);
    if (nic->address.empty()) return VIP_ERROR_RESOURCE;
    start_event_thread(*nic);
    try {
      start_handler_thread(*nic);
    } catch (...) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(nic->stop_fd, &one, sizeof one);
      nic->event_thread.join();
      throw;
    }
    *NicHandle = nic->handle = nics.add(nic);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    close_nic(*nic, nic.lock);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* NicAttribs) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || NicAttribs == nullptr) return VIP_INVALID_PARAMETER;
    ibv_port_attr port{};
    if (ibv_query_port(nic->context, kPort, &port) != 0) return VIP_ERROR_RESOURCE;
    const ibv_device_attr& device = nic->device;
    VIP_NIC_ATTRIBUTES& to = *NicAttribs;
    to = {};
    nic->name.copy(to.Name, sizeof to.Name - 1);
    to.HardwareVersion = device.hw_ver;
    to.ProviderVersion = 0x0100;  // VIPL 1.0
    to.NicAddressLen = static_cast<VIP_UINT16>(nic->address.size());
    to.LocalNicAddress = reinterpret_cast<const VIP_UINT8*>(nic->address.data());
    to.ThreadSafe = VIP_TRUE;
    to.MaxDiscriminatorLen = kMaxDiscriminator;
    to.MaxRegisterBytes = device.max_mr_size;
    to.MaxRegisterRegions = static_cast<VIP_ULONG>(device.max_mr);
    to.MaxRegisterBlockBytes = device.max_mr_size;
    to.MaxVI = static_cast<VIP_ULONG>(device.max_qp);
    to.MaxDescriptorsPerQueue = kMaxDescriptors;
    to.MaxSegmentsPerDesc = kMaxDataSegments + 1;
    to.MaxCQ = static_cast<VIP_ULONG>(device.max_cq);
    to.MaxCQEntries = static_cast<VIP_ULONG>(device.max_cqe);
    to.MaxTransferSize = port.max_msg_sz;
    to.NativeMTU = VIP_ULONG{128} << port.active_mtu;
    to.MaxPtags = static_cast<VIP_ULONG>(device.max_pd);
    to.ReliabilityLevelSupport =
        VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    to.RDMAReadSupport = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
                                        VIP_PVOID SysManInfo) {
  return guarded([&] {
    {
      const Access<Nic> nic(nics, NicHandle);
      if (!nic || SysManInfo == nullptr || InfoType != VIP_SMI_AUTODISCOVERY) {
        return VIP_INVALID_PARAMETER;
      }
    }
    // An IP network cannot be searched, so the list contains the NICs of this machine.
    auto* list = static_cast<VIP_AUTODISCOVERY_LIST*>(SysManInfo);
    const DeviceList devices;
    VIP_ULONG count = 0;
    for (int i = 0; i < devices.count(); ++i) {
      ibv_context* context = ibv_open_device(devices[i]);
      if (context == nullptr) continue;
      const std::string address = address_of(context);
      ibv_close_device(context);
      if (address.empty()) continue;
      const bool room = list->ADAddrArray != nullptr && count < list->NumAdAddrs;
      if (room && list->ADAddrArray[count] != nullptr) {
        write_address({address, ""}, list->ADAddrArray[count]);
      }
      ++count;
    }
    list->NumAdAddrs = count;
    return VIP_SUCCESS;
  });
}
