#include "emulator/engine/device_profile.h"

#include <cstring>

#include "emulator/abi/send_opcodes.h"
#include "emulator/engine/base/limits.h"

namespace rocemu::engine {
namespace {

abi::DeviceAttr generic_attributes() {
  abi::DeviceAttr attr{};
  attr.max_mr_size = ~uint64_t{0};
  attr.page_size_cap = 0xfffff000;
  attr.vendor_id = 0xffffff;  // "no IEEE OUI", as other software devices
  attr.vendor_part_id = 0;
  // The flags of ibv_device_cap_flags; the flags that exist only in device_cap_flags_ex concern
  // opcodes.
  constexpr uint32_t kBadPkeyCounter = 1u << 1, kBadQkeyCounter = 1u << 2,
                     kPortActiveEvent = 1u << 10, kSysImageGuid = 1u << 11, kRcRnrNakGen = 1u << 12,
                     kMemWindow = 1u << 17, kXrc = 1u << 20, kMemMgtExtensions = 1u << 21,
                     kMemWindowType2b = 1u << 24;
  attr.device_cap_flags = kBadPkeyCounter | kBadQkeyCounter | kPortActiveEvent | kSysImageGuid |
                          kRcRnrNakGen | kMemWindow | kXrc | kMemMgtExtensions | kMemWindowType2b;
  attr.device_cap_flags_ex = attr.device_cap_flags | abi::send_capabilities();
  attr.max_qp = kMaxQps;
  attr.max_qp_wr = kMaxQpWr;
  attr.max_sge = kMaxSge;
  attr.max_sge_rd = kMaxSge;
  attr.max_cq = kMaxCqs;
  attr.max_cqe = kMaxCqe;
  attr.max_mr = kMaxRegions;
  attr.max_mw = kMaxWindows;
  attr.max_pd = kMaxPds;
  attr.max_qp_rd_atom = kMaxRdAtomic;
  attr.max_res_rd_atom = kMaxRdAtomic * 1024;
  attr.max_qp_init_rd_atom = kMaxRdAtomic;
  attr.atomic_cap = 1;  // IBV_ATOMIC_HCA: atomic among the operations of this device
  attr.max_ah = kMaxAhs;
  attr.max_srq = kMaxSrqs;
  attr.max_srq_wr = kMaxSrqWr;
  attr.max_srq_sge = kMaxSge;
  attr.max_mcast_grp = kMaxMulticastGroups;
  attr.max_mcast_qp_attach = kMaxQpsPerGroup;
  attr.max_total_mcast_qp_attach = kMaxMulticastGroups * kMaxQpsPerGroup;
  attr.max_inline_data = kMaxInlineData;
  attr.max_pkeys = kPkeyTableLength;
  attr.local_ca_ack_delay = 15;
  attr.phys_port_cnt = 1;
  attr.num_comp_vectors = kCompVectors;
  attr.max_dm_size = kMaxDeviceMemory;
  // A completion's timestamp counts nanoseconds, and all of its bits are valid.
  attr.timestamp_mask = ~uint64_t{0};
  attr.hca_core_clock = 1'000'000;
  // The values of ibv_odp_general_caps and ibv_odp_transport_cap_bits. Nothing is ever pinned, so
  // every operation of a transport works with on-demand paging.
  constexpr uint64_t kOdp = 1, kOdpImplicit = 2;
  constexpr uint32_t kSend = 1, kRecv = 2, kWrite = 4, kRead = 8, kAtomic = 16, kSrqRecv = 32;
  constexpr uint32_t kFlush = 64, kAtomicWrite = 128;  // in ib_user_verbs.h, not in verbs.h
  attr.odp_general_caps = kOdp | kOdpImplicit;
  constexpr uint32_t kRemote = kWrite | kRead | kAtomic;
  attr.odp_caps[0] = kSend | kRecv | kSrqRecv | kRemote | kFlush | kAtomicWrite;  // RC
  attr.odp_caps[1] = kSend | kRecv | kWrite | kSrqRecv;                           // UC
  attr.odp_caps[2] = kSend | kRecv | kSrqRecv;                                    // UD
  attr.odp_caps[3] = kSend | kSrqRecv | kRemote;                                  // XRC
  attr.max_cq_moderation_count = kMaxCqModeration;
  attr.max_cq_moderation_period = kMaxCqModeration;
  static_assert(sizeof(ROCEMU_VERSION) <= sizeof(attr.fw_ver));
  std::memcpy(attr.fw_ver, ROCEMU_VERSION, sizeof(ROCEMU_VERSION));
  return attr;
}

abi::PortAttr generic_port() {
  constexpr uint32_t kCmSupported = 1u << 16, kIpBasedGids = 1u << 26;
  constexpr uint8_t kWidth4x = 2, kSpeedEdr = 32;
  abi::PortAttr port{};
  port.max_mtu = static_cast<uint32_t>(abi::Mtu::k4096);
  port.gid_tbl_len = kGidTableLength;
  port.port_cap_flags = kCmSupported | kIpBasedGids;
  port.max_msg_sz = static_cast<uint32_t>(kMaxMessage);
  port.pkey_tbl_len = kPkeyTableLength;
  port.active_width = kWidth4x;
  port.active_speed = kSpeedEdr;
  port.max_vl_num = 1;
  port.link_layer = static_cast<uint8_t>(abi::LinkLayer::kEthernet);
  return port;
}

}  // namespace

bool DeviceProfile::is_generic() const {
  return this == generic_profile().get();
}

const std::shared_ptr<const DeviceProfile>& generic_profile() {
  static const std::shared_ptr<const DeviceProfile> profile = [] {
    auto generic = std::make_shared<DeviceProfile>();
    generic->summary = "rocemu's own device, generous in every limit";
    generic->attr = generic_attributes();
    generic->port = generic_port();
    return generic;
  }();
  return profile;
}

}  // namespace rocemu::engine
