#include "emulator/engine/rdmacm/id_options.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm::commands {
namespace {

using abi::ucma::IdOption;

std::optional<uint8_t> byte_in(std::span<const std::byte> value) {
  return value.size() == 1 ? std::optional(static_cast<uint8_t>(value[0])) : std::nullopt;
}

std::optional<bool> flag_in(std::span<const std::byte> value) {
  int flag;
  if (value.size() != sizeof flag) return std::nullopt;
  std::memcpy(&flag, value.data(), sizeof flag);
  return flag != 0;
}

int set_id_option(RdmaId& id, IdOption option, std::span<const std::byte> value) {
  switch (option) {
    case IdOption::kTos: {
      const std::optional<uint8_t> tos = byte_in(value);
      if (!tos) return EINVAL;
      id.traffic_class = *tos;
      return 0;
    }
    case IdOption::kReuseAddress: {
      const std::optional<bool> reuse = flag_in(value);
      // A listening id rejects both values. Other ids can set the option in every state, but clear
      // it only while they are idle.
      if (!reuse || (*reuse && id.state == IdState::kListening)) return EINVAL;
      if (!*reuse && id.state != IdState::kIdle) return EINVAL;
      id.reuse_address = *reuse;
      return 0;
    }
    case IdOption::kAddressFamilyOnly: {
      const std::optional<bool> only = flag_in(value);
      if (!only || (id.state != IdState::kIdle && id.state != IdState::kBound)) return EINVAL;
      id.family_only_option = only;
      id.family_only = *only;
      return 0;
    }
    case IdOption::kAckTimeout: {
      const std::optional<uint8_t> timeout = byte_in(value);
      if (!timeout) return EINVAL;
      if (id.qp_type != abi::QpType::kRc && id.qp_type != abi::QpType::kXrcSend) return EINVAL;
      id.ack_timeout = timeout;
      return 0;
    }
  }
  return ENOSYS;
}

/// Sets the path that route resolution would otherwise find. On RoCE there is one path between two
/// addresses, so the contents of the path are not needed.
int set_path(EventOutput& events, RdmaId& id, std::span<const std::byte> value) {
  using namespace abi::ucma;
  constexpr uint32_t kUsable = kPathGmp | kPathPrimary | kPathBidirectional;
  if (value.empty() || value.size() % sizeof(PathData) != 0) return EINVAL;
  bool usable = false;
  for (; !value.empty() && !usable; value = value.subspan(sizeof(PathData))) {
    uint32_t flags;
    std::memcpy(&flags, value.data(), sizeof flags);
    usable = flags == kUsable;
  }
  if (!usable || !id.local || id.state != IdState::kAddressResolved) return EINVAL;
  id.state = IdState::kRouteResolved;
  id.num_paths = 1;
  events.emit(id, abi::ucma::EventType::kRouteResolved);
  return 0;
}

}  // namespace

int set_option(const IdTable& ids, EventOutput& events, const CmCommand& command) {
  const auto in = parse<abi::ucma::SetOption>(command);
  if (!in || command.in.size() - sizeof *in != in->length) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find(command.channel, in->id, id)) return error;
  const auto value = command.in.subspan(sizeof *in);
  switch (in->level) {
    case abi::ucma::OptionLevel::kId:
      return set_id_option(*id, static_cast<IdOption>(in->name), value);
    case abi::ucma::OptionLevel::kIb:
      return static_cast<abi::ucma::IbOption>(in->name) == abi::ucma::IbOption::kPath
                 ? set_path(events, *id, value)
                 : ENOSYS;
  }
  return ENOSYS;
}

}  // namespace rocemu::engine::cm::commands
