// The names of flags and enumerators in a profile, which are those of <infiniband/verbs.h> without
// the prefix
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::profile {

struct FieldName {
  std::string_view text;
  uint64_t value;
};

inline constexpr FieldName kCapFlags[] = {
    {"RESIZE_MAX_WR", 1u << 0},       {"BAD_PKEY_CNTR", 1u << 1},
    {"BAD_QKEY_CNTR", 1u << 2},       {"RAW_MULTI", 1u << 3},
    {"AUTO_PATH_MIG", 1u << 4},       {"CHANGE_PHY_PORT", 1u << 5},
    {"UD_AV_PORT_ENFORCE", 1u << 6},  {"CURR_QP_STATE_MOD", 1u << 7},
    {"SHUTDOWN_PORT", 1u << 8},       {"INIT_TYPE", 1u << 9},
    {"PORT_ACTIVE_EVENT", 1u << 10},  {"SYS_IMAGE_GUID", 1u << 11},
    {"RC_RNR_NAK_GEN", 1u << 12},     {"SRQ_RESIZE", 1u << 13},
    {"N_NOTIFY_CQ", 1u << 14},        {"MEM_WINDOW", 1u << 17},
    {"UD_IP_CSUM", 1u << 18},         {"XRC", 1u << 20},
    {"MEM_MGT_EXTENSIONS", 1u << 21}, {"MEM_WINDOW_TYPE_2A", 1u << 23},
    {"MEM_WINDOW_TYPE_2B", 1u << 24}, {"RC_IP_CSUM", 1u << 25},
    {"RAW_IP_CSUM", 1u << 26},        {"MANAGED_FLOW_STEERING", 1u << 29},
};

inline constexpr FieldName kAtomicCaps[] = {{"NONE", 0}, {"HCA", 1}, {"GLOB", 2}};

inline constexpr FieldName kOdpGeneral[] = {{"SUPPORT", 1}, {"SUPPORT_IMPLICIT", 2}};
inline constexpr FieldName kOdpTransport[] = {
    {"SEND", 1},    {"RECV", 2},      {"WRITE", 4},  {"READ", 8},
    {"ATOMIC", 16}, {"SRQ_RECV", 32}, {"FLUSH", 64}, {"ATOMIC_WRITE", 128},
};

inline constexpr FieldName kNodeTypes[] = {
    {"CA", 1}, {"RNIC", 4}, {"USNIC", 5}, {"USNIC_UDP", 6}, {"UNSPECIFIED", 7}};

inline constexpr FieldName kLinkLayers[] = {{"Unspecified", 0}, {"InfiniBand", 1}, {"Ethernet", 2}};

inline constexpr FieldName kMtus[] = {
    {"256", 1}, {"512", 2}, {"1024", 3}, {"2048", 4}, {"4096", 5}};

/// The names for ibv_port_attr::active_width (kWidths) and active_speed (kSpeeds).
inline constexpr FieldName kWidths[] = {{"1X", 1}, {"4X", 2}, {"8X", 4}, {"12X", 8}, {"2X", 16}};
inline constexpr FieldName kSpeeds[] = {{"SDR", 1},  {"DDR", 2},  {"QDR", 4},  {"FDR10", 8},
                                        {"FDR", 16}, {"EDR", 32}, {"HDR", 64}, {"NDR", 128}};

inline constexpr FieldName kGidTypes[] = {{"RoCE v1", 0}, {"RoCE v2", 1}};

inline constexpr FieldName kInlineAbove[] = {{"refuse", 0}, {"cap", 1}};

/// The names for abi::PostRules::no_inline_room. If the value is `true`, inline data can also use
/// the space of the SGEs in a WQE: the engine then grants this space. With a profile, the provider
/// never requests it.
inline constexpr FieldName kInlineRoom[] = {{"true", 1}, {"false", 2}};

inline constexpr FieldName kBooleans[] = {{"false", 0}, {"true", 1}};

namespace field_names {
constexpr uint64_t bit_of(auto value) {
  return uint64_t{1} << static_cast<uint32_t>(value);
}
}  // namespace field_names

inline constexpr auto kQpTypes = [] {
  std::array<FieldName, abi::kQpTypeNames.size()> names{};
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = {abi::kQpTypeNames[i].name, field_names::bit_of(abi::kQpTypeNames[i].value)};
  return names;
}();

/// The opcodes that rocemu can send
inline constexpr auto kOpcodes = [] {
  std::array<FieldName, std::size(abi::kSendOpcodes)> names{};
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = {abi::name_of(abi::kSendOpcodes[i].opcode),
                field_names::bit_of(abi::kSendOpcodes[i].opcode)};
  return names;
}();

inline constexpr FieldName kAccess[] = {
    {"LOCAL_WRITE", abi::kAccessLocalWrite},   {"REMOTE_WRITE", abi::kAccessRemoteWrite},
    {"REMOTE_READ", abi::kAccessRemoteRead},   {"REMOTE_ATOMIC", abi::kAccessRemoteAtomic},
    {"MW_BIND", abi::kAccessMwBind},           {"ZERO_BASED", abi::kAccessZeroBased},
    {"ON_DEMAND", abi::kAccessOnDemand},       {"HUGETLB", abi::kAccessHugetlb},
    {"FLUSH_GLOBAL", abi::kAccessFlushGlobal}, {"FLUSH_PERSISTENT", abi::kAccessFlushPersistent},
};

}  // namespace rocemu::profile
