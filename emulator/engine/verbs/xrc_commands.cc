#include "emulator/engine/verbs/xrc_commands.h"

#include <cerrno>

namespace rocemu::engine {
namespace {

XrcDomain* domain_of_file(CommandContext& context, DeviceIndex device, uint64_t file_device,
                          uint64_t inode) {
  XrcDomain* found = nullptr;
  context.objects.xrcds.for_each([&](XrcDomain& domain) {
    if (domain.device == device && domain.file_device == file_device && domain.inode == inode) {
      found = &domain;
    }
  });
  return found;
}

}  // namespace

int open_xrcd(CommandContext& context, ClientId client, const abi::Request::Body& in,
              uint32_t& handle) {
  const auto& arguments = in.open_xrcd;
  const DeviceIndex device = context.objects.clients.device_of(client);
  const bool create = arguments.create != 0;
  XrcDomain* domain = nullptr;
  if (arguments.inode != 0) {
    domain = domain_of_file(context, device, arguments.device, arguments.inode);
    // ibv_open_xrcd(3): "If O_EXCL and O_CREAT are set, open will fail if an XRCD associated with
    // the inode exists."
    if (domain != nullptr && create && arguments.exclusive != 0) return EEXIST;
    if (domain == nullptr && !create) return ENOENT;
  } else if (!create) {
    // ibv_open_xrcd(3): "If fd equals -1 ... To indicate that XRCD should be created, use oflag =
    // O_CREAT."
    return EINVAL;
  }
  if (domain == nullptr) {
    domain = context.objects.xrcds.create();
    if (domain == nullptr) return ENOMEM;
    domain->device = device;
    domain->file_device = arguments.device;
    domain->inode = arguments.inode;
  }
  ++domain->openers[client].times;
  handle = domain->id.value;
  return 0;
}

int close_xrcd(CommandContext& context, ClientId client, uint32_t handle) {
  XrcDomain* domain = context.objects.xrcds.find(XrcdId{handle});
  if (domain == nullptr) return ENOENT;
  const auto opener = domain->openers.find(client);
  if (opener == domain->openers.end()) return ENOENT;
  // ibv_close_xrcd(3): "may fail if any other resource is still associated with the XRCD".
  if (opener->second.times == 1 && opener->second.objects != 0) return EBUSY;
  if (--opener->second.times != 0) return 0;
  domain->openers.erase(opener);
  // ibv_close_xrcd(3): "If this is the last reference, the XRCD will be destroyed."
  if (domain->openers.empty()) context.objects.xrcds.destroy(domain->id);
  return 0;
}

int open_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
            abi::Reply::Body& out) {
  const auto& arguments = in.open_qp;
  XrcDomain* domain = context.objects.xrcds.find(XrcdId{arguments.xrcd});
  if (domain == nullptr || !domain->opened_by(client)) return ENOENT;
  // ibv_open_qp(3) fails for a QP "that does not exist within the xrcd".
  QueuePair* qp = context.objects.qps.find(QpNumber{arguments.qpn});
  if (qp == nullptr || qp->type != abi::QpType::kXrcRecv || qp->xrcd != domain->id) return EINVAL;
  qp->further_references.push_back({client, arguments.user_handle});
  ++domain->openers[client].objects;
  out.open_qp.qpn = qp->number.value;
  out.open_qp.type = static_cast<uint32_t>(qp->type);
  out.open_qp.state = static_cast<uint32_t>(qp->state);
  return 0;
}

}  // namespace rocemu::engine
