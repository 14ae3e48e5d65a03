#include "emulator/daemon/kernel/nldev.h"

#include <fmt/format.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>

#include "emulator/abi/runtime_dir.h"
#include "emulator/daemon/kernel/port_counters.h"

namespace rocemu::daemon {
namespace {

constexpr uint32_t kPort = 1;  // each device has this port, and no other is connected
constexpr uint8_t kSharedNamespaces = 1;
constexpr uint64_t kUverbsAbi = 1;
constexpr uint32_t kUnknownDriver = 0;

struct Request {
  nlmsghdr header;
  NetlinkAttributes attributes;
  bool is_dump() const { return (header.nlmsg_flags & NLM_F_DUMP) != 0; }
  uint16_t operation() const { return RDMA_NL_GET_OP(header.nlmsg_type); }
};

/// Answers one request. Each handler returns 0 or a positive errno value. Its messages are sent
/// only if it returns 0.
class NetlinkAnswer {
 public:
  NetlinkAnswer(const Request& request, NldevSource& source) : request_(request), source_(source) {}

  int run() {
    switch (request_.operation()) {
      case RDMA_NLDEV_CMD_GET:
        return for_devices(/*dump_needs_device=*/false, [this](uint32_t i) { return device(i); });
      case RDMA_NLDEV_CMD_PORT_GET:
        return for_devices(/*dump_needs_device=*/true, [this](uint32_t i) { return port(i); });
      case RDMA_NLDEV_CMD_SYS_GET:
        return system();
      case RDMA_NLDEV_CMD_GET_CHARDEV:
        return character_device();
      case RDMA_NLDEV_CMD_STAT_GET:
        return for_devices(/*dump_needs_device=*/true, [this](uint32_t i) { return counters(i); });
      case RDMA_NLDEV_CMD_RES_GET:
        return for_devices(/*dump_needs_device=*/false, [this](uint32_t i) { return summary(i); });
      case RDMA_NLDEV_CMD_RES_QP_GET:
      case RDMA_NLDEV_CMD_RES_CQ_GET:
      case RDMA_NLDEV_CMD_RES_MR_GET:
      case RDMA_NLDEV_CMD_RES_PD_GET:
      case RDMA_NLDEV_CMD_RES_SRQ_GET:
      case RDMA_NLDEV_CMD_RES_CTX_GET:
      case RDMA_NLDEV_CMD_RES_CM_ID_GET:
        return for_devices(/*dump_needs_device=*/true, [this](uint32_t i) { return objects(i); });
      default:
        return EOPNOTSUPP;  // for example commands that change something
    }
  }

  std::vector<Bytes> take() { return std::move(messages_); }

 private:
  template <class Describe>
  int for_devices(bool dump_needs_device, Describe describe) {
    const std::optional<uint32_t> index = request_.attributes.u32(RDMA_NLDEV_ATTR_DEV_INDEX);
    const bool is_named = request_.attributes.has(RDMA_NLDEV_ATTR_DEV_INDEX);
    const auto count = static_cast<uint32_t>(source_.device_count());
    if (is_named && (!index || !has_device(*index))) return EINVAL;
    if (is_named) return describe(*index);
    if (!request_.is_dump() || dump_needs_device) return EINVAL;
    for (uint32_t i = 0; i < count; ++i) {
      if (!has_device(i)) continue;
      if (const int error = describe(i); error != 0) return error;
    }
    return 0;
  }

  bool has_device(uint32_t index) const {
    return index < source_.device_count() && source_.has_device({index});
  }

  template <class Fill>
  void add(uint32_t index, const std::string& name, Fill fill) {
    NetlinkMessage message(request_.header, request_.header.nlmsg_type,
                           request_.is_dump() ? NLM_F_MULTI : 0);
    message.add_u32(RDMA_NLDEV_ATTR_DEV_INDEX, index);
    message.add_text(RDMA_NLDEV_ATTR_DEV_NAME, name);
    fill(message);
    messages_.push_back(message.take());
  }

  int device(uint32_t index) {
    const SysfsDevice device = source_.device({index});
    add(index, device.name, [&](NetlinkMessage& message) {
      message.add_u32(RDMA_NLDEV_ATTR_PORT_INDEX, device.attr.phys_port_cnt);  // number of ports
      message.add_u64(RDMA_NLDEV_ATTR_CAP_FLAGS, device.attr.device_cap_flags);
      message.add_text(
          RDMA_NLDEV_ATTR_FW_VERSION,
          {device.attr.fw_ver, strnlen(device.attr.fw_ver, sizeof device.attr.fw_ver)});
      message.add_u64(RDMA_NLDEV_ATTR_NODE_GUID, device.attr.node_guid);
      message.add_u64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device.attr.sys_image_guid);
      message.add_u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
                     static_cast<uint8_t>(device.profile->identity.node_type));
      message.add_u8(RDMA_NLDEV_ATTR_DEV_DIM, 0);
      message.add_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
    });
    return 0;
  }

  /// Returns the port that the request names. A dump need not name a port, and then gets the first
  /// one. Returns nothing if the device has no such port.
  std::optional<uint32_t> named_port(uint32_t count) const {
    if (!request_.attributes.has(RDMA_NLDEV_ATTR_PORT_INDEX))
      return request_.is_dump() ? std::optional(kPort) : std::nullopt;
    const std::optional<uint32_t> port = request_.attributes.u32(RDMA_NLDEV_ATTR_PORT_INDEX);
    return port && *port >= kPort && *port <= count ? port : std::nullopt;
  }

  int port(uint32_t index) {
    const SysfsDevice device = source_.device({index});
    const std::optional<uint32_t> number = named_port(device.attr.phys_port_cnt);
    if (!number) return EINVAL;
    const bool is_connected = *number == kPort;
    constexpr uint8_t kDisabled = 3;
    add(index, device.name, [&](NetlinkMessage& message) {
      message.add_u32(RDMA_NLDEV_ATTR_PORT_INDEX, *number);
      message.add_u8(RDMA_NLDEV_ATTR_PORT_STATE, is_connected
                                                     ? static_cast<uint8_t>(device.port.state)
                                                     : static_cast<uint8_t>(abi::PortState::kDown));
      message.add_u8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
                     is_connected ? device.port.phys_state : kDisabled);
      if (!is_connected) return;
      const std::string netdev = device.netdev();
      message.add_u32(RDMA_NLDEV_ATTR_NDEV_INDEX, if_nametoindex(netdev.c_str()));
      message.add_text(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
    });
    return 0;
  }

  int system() {
    NetlinkMessage message(request_.header, request_.header.nlmsg_type, 0);
    message.add_u8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, kSharedNamespaces);
    messages_.push_back(message.take());
    return 0;
  }

  int character_device() {
    const auto type = request_.attributes.text(RDMA_NLDEV_ATTR_CHARDEV_TYPE);
    const auto index = request_.attributes.u32(RDMA_NLDEV_ATTR_DEV_INDEX);
    if (!type) return EINVAL;
    if (*type != "uverbs") return ENOENT;  // readers then read sysfs
    if (!index || !has_device(*index)) return EINVAL;
    NetlinkMessage message(request_.header, request_.header.nlmsg_type, 0);
    message.add_u64(RDMA_NLDEV_ATTR_CHARDEV,
                    makedev(abi::kDeviceMajor, abi::kDeviceMinorBase + *index));
    message.add_u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, kUverbsAbi);
    message.add_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, fmt::format("{}{}", abi::kDevicePrefix, *index));
    message.add_u32(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, kUnknownDriver);
    messages_.push_back(message.take());
    return 0;
  }

  int counters(uint32_t index) {
    const std::optional<uint32_t> number = named_port(source_.device({index}).attr.phys_port_cnt);
    if (!number) return EINVAL;
    const engine::DeviceSnapshot& state = state_of(index);
    const engine::Counters none{};
    add(index, state.name, [&](NetlinkMessage& message) {
      message.add_u32(RDMA_NLDEV_ATTR_PORT_INDEX, *number);
      const NetlinkMessage::Nest table(message, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
      for (const auto& [name, value] :
           hardware_counters(*number == kPort ? state.counters : none, state.pauses)) {
        const NetlinkMessage::Nest entry(message, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
        message.add_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
        message.add_u64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
      }
    });
    return 0;
  }

  int summary(uint32_t index) {
    const engine::DeviceSnapshot& state = state_of(index);
    const auto contexts =
        std::count_if(clients_->begin(), clients_->end(),
                      [&](const auto& client) { return client.device.value == index; });
    add(index, state.name, [&](NetlinkMessage& message) {
      const NetlinkMessage::Nest table(message, RDMA_NLDEV_ATTR_RES_SUMMARY);
      const auto count = [&](std::string_view name, size_t value) {
        const NetlinkMessage::Nest entry(message, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
        message.add_text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
        message.add_u64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, value);
      };
      count("pd", state.pds.size());
      count("cq", state.cqs.size());
      count("qp", state.qps.size());
      count("cm_id", ids_of(index).size());
      count("mr", state.mrs.size());
      count("ctx", static_cast<size_t>(contexts));
      count("srq", state.srqs.size());
    });
    return 0;
  }

  int objects(uint32_t index) {
    const engine::DeviceSnapshot& state = state_of(index);
    switch (request_.operation()) {
      case RDMA_NLDEV_CMD_RES_QP_GET:
        return list(state, index, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_LQPN, state.qps);
      case RDMA_NLDEV_CMD_RES_CQ_GET:
        return list(state, index, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQN, state.cqs);
      case RDMA_NLDEV_CMD_RES_MR_GET:
        return list(state, index, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MRN, state.mrs);
      case RDMA_NLDEV_CMD_RES_PD_GET:
        return list(state, index, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PDN, state.pds);
      case RDMA_NLDEV_CMD_RES_SRQ_GET:
        return list(state, index, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQN, state.srqs);
      case RDMA_NLDEV_CMD_RES_CTX_GET: {
        std::vector<NldevClient> contexts;
        std::copy_if(clients_->begin(), clients_->end(), std::back_inserter(contexts),
                     [&](const NldevClient& client) { return client.device.value == index; });
        return list(state, index, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTXN, contexts);
      }
      default:
        return list(state, index, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_IDN,
                    ids_of(index, request_.attributes.u32(RDMA_NLDEV_ATTR_PORT_INDEX).value_or(0)));
    }
  }

  /// Adds objects to the reply. A dump gets all objects, each in a separate message; any other
  /// request gets the object that its attribute `number` selects.
  template <class Object>
  int list(const engine::DeviceSnapshot& state, uint32_t index, uint16_t table, uint16_t number,
           const std::vector<Object>& objects) {
    const auto entry = static_cast<uint16_t>(table + 1);  // so they are numbered
    if (request_.is_dump()) {
      for (const Object& object : objects) {
        add(index, state.name, [&](NetlinkMessage& message) {
          const NetlinkMessage::Nest in_table(message, table);
          const NetlinkMessage::Nest in_entry(message, entry);
          describe(message, object);
        });
      }
      return 0;
    }
    const std::optional<uint32_t> wanted = request_.attributes.u32(number);
    if (!wanted) return EINVAL;
    const auto found = std::find_if(objects.begin(), objects.end(), [&](const Object& object) {
      return number_of(object) == *wanted;
    });
    if (found == objects.end()) return ENOENT;
    add(index, state.name, [&](NetlinkMessage& message) { describe(message, *found); });
    return 0;
  }

  /// Returns the rdma_cm ids of a device or, if `port` is not 0, of that port. An id that listens
  /// on the wildcard address belongs to every device and to no port, as in the kernel, which
  /// creates such an id for each device.
  std::vector<engine::RdmaIdSnapshot> ids_of(uint32_t index, uint32_t port = 0) {
    state_of(index);
    std::vector<engine::RdmaIdSnapshot> ids;
    std::copy_if(snapshot_->rdma_ids.begin(), snapshot_->rdma_ids.end(), std::back_inserter(ids),
                 [&](const engine::RdmaIdSnapshot& id) {
                   if (id.device) return id.device->value == index && (port == 0 || port == kPort);
                   return port == 0 && id.state == engine::RdmaIdState::kListen;
                 });
    return ids;
  }

  static uint32_t number_of(const engine::QpSnapshot& qp) { return qp.number.value; }
  static uint32_t number_of(const engine::RdmaIdSnapshot& id) { return id.number; }
  template <class Object>
  static uint32_t number_of(const Object& object) {
    return object.id.value;
  }

  void describe(NetlinkMessage& message, const engine::QpSnapshot& qp) {
    const bool is_connected = qp.type == abi::QpType::kRc || qp.type == abi::QpType::kUc;
    if (qp.state != abi::QpState::kReset) message.add_u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
    message.add_u32(RDMA_NLDEV_ATTR_RES_LQPN, qp.number.value);
    if (is_connected) {
      message.add_u32(RDMA_NLDEV_ATTR_RES_RQPN, qp.dest_qpn);
      message.add_u32(RDMA_NLDEV_ATTR_RES_RQ_PSN, qp.expected_psn);
      message.add_u8(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, 0);  // migrated: there is one path
    }
    message.add_u32(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp.send_psn);
    message.add_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(qp.type));
    message.add_u8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<uint8_t>(qp.state));
    if (qp.pd.value != 0) message.add_u32(RDMA_NLDEV_ATTR_RES_PDN, qp.pd.value);
    add_owner(message, qp.client);
  }

  void describe(NetlinkMessage& message, const engine::CqSnapshot& cq) {
    message.add_u32(RDMA_NLDEV_ATTR_RES_CQE, cq.capacity);
    message.add_u64(RDMA_NLDEV_ATTR_RES_USECNT, users_of(cq.id));
    message.add_u32(RDMA_NLDEV_ATTR_RES_CQN, cq.id.value);
    message.add_u32(RDMA_NLDEV_ATTR_RES_CTXN, cq.client.value);
    add_owner(message, cq.client);
  }

  void describe(NetlinkMessage& message, const engine::MrSnapshot& mr) {
    message.add_u32(RDMA_NLDEV_ATTR_RES_RKEY, mr.rkey);
    message.add_u32(RDMA_NLDEV_ATTR_RES_LKEY, mr.lkey);
    message.add_u64(RDMA_NLDEV_ATTR_RES_MRLEN, mr.length);
    message.add_u32(RDMA_NLDEV_ATTR_RES_MRN, mr.id.value);
    message.add_u32(RDMA_NLDEV_ATTR_RES_PDN, mr.pd.value);
    add_owner(message, mr.client);
  }

  void describe(NetlinkMessage& message, const engine::PdSnapshot& pd) {
    message.add_u64(RDMA_NLDEV_ATTR_RES_USECNT, pd.users);
    message.add_u32(RDMA_NLDEV_ATTR_RES_PDN, pd.id.value);
    message.add_u32(RDMA_NLDEV_ATTR_RES_CTXN, pd.client.value);
    add_owner(message, pd.client);
  }

  void describe(NetlinkMessage& message, const engine::SrqSnapshot& srq) {
    message.add_u32(RDMA_NLDEV_ATTR_RES_SRQN, srq.id.value);
    message.add_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(srq.type));
    message.add_u32(RDMA_NLDEV_ATTR_RES_PDN, srq.pd.value);
    if (srq.type == abi::SrqType::kXrc) message.add_u32(RDMA_NLDEV_ATTR_RES_CQN, srq.cq.value);
    add_qps_of(message, srq.id);
    add_owner(message, srq.client);
  }

  void describe(NetlinkMessage& message, const NldevClient& context) {
    message.add_u32(RDMA_NLDEV_ATTR_RES_CTXN, context.id.value);
    add_owner(message, context.id);
  }

  void describe(NetlinkMessage& message, const engine::RdmaIdSnapshot& id) {
    if (id.device) message.add_u32(RDMA_NLDEV_ATTR_PORT_INDEX, kPort);
    if (id.qpn != 0) {
      message.add_u32(RDMA_NLDEV_ATTR_RES_LQPN, id.qpn);
      message.add_u8(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(id.qp_type));
    }
    message.add_u32(RDMA_NLDEV_ATTR_RES_PS, static_cast<uint32_t>(id.port_space));
    message.add_u8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<uint8_t>(id.state));
    add_address(message, RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.source);
    add_address(message, RDMA_NLDEV_ATTR_RES_DST_ADDR, id.destination);
    message.add_u32(RDMA_NLDEV_ATTR_RES_CM_IDN, id.number);
    if (const auto pid = source_.pid_of(id.channel)) {
      message.add_u32(RDMA_NLDEV_ATTR_RES_PID, static_cast<uint32_t>(*pid));
    }
  }

  static void add_address(NetlinkMessage& message, uint16_t attribute,
                          const abi::ucma::SockaddrStorage& address) {
    const auto bytes = std::as_bytes(std::span(address.bytes));
    const bool has_family = std::any_of(bytes.begin(), bytes.begin() + sizeof(sa_family_t),
                                        [](std::byte byte) { return byte != std::byte{}; });
    if (has_family) message.add_attribute(attribute, bytes);
  }

  /// Adds the QPs that use the SRQ, but at most 100, which fit into a message.
  void add_qps_of(NetlinkMessage& message, engine::SrqId srq) {
    constexpr size_t kMax = 100;
    const NetlinkMessage::Nest table(message, RDMA_NLDEV_ATTR_RES_QP);
    size_t count = 0;
    for (const engine::DeviceSnapshot& device : snapshot_->devices) {
      for (const engine::QpSnapshot& qp : device.qps) {
        if (qp.srq != srq || ++count > kMax) continue;
        const NetlinkMessage::Nest entry(message, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
        message.add_u32(RDMA_NLDEV_ATTR_RES_LQPN, qp.number.value);
      }
    }
  }

  /// Returns the number of QPs that use the CQ. As in the kernel, a QP that uses it for both queues
  /// counts twice.
  uint64_t users_of(engine::CqId cq) {
    if (cq_users_.empty()) {
      for (const engine::DeviceSnapshot& device : snapshot_->devices) {
        for (const engine::QpSnapshot& qp : device.qps) {
          ++cq_users_[qp.send_cq];
          ++cq_users_[qp.recv_cq];
        }
      }
    }
    const auto found = cq_users_.find(cq);
    return found == cq_users_.end() ? 0 : found->second;
  }

  void add_owner(NetlinkMessage& message, engine::ClientId owner) {
    const auto found = std::find_if(clients_->begin(), clients_->end(),
                                    [&](const NldevClient& client) { return client.id == owner; });
    if (found == clients_->end()) return;
    message.add_u32(RDMA_NLDEV_ATTR_RES_PID, static_cast<uint32_t>(found->pid));
  }

  const engine::DeviceSnapshot& state_of(uint32_t index) {
    if (!snapshot_) {
      snapshot_ = source_.snapshot();
      clients_ = source_.clients();
    }
    return snapshot_->devices[index];
  }

  const Request& request_;
  NldevSource& source_;
  std::optional<engine::FabricSnapshot> snapshot_;
  std::optional<std::vector<NldevClient>> clients_;
  std::unordered_map<engine::CqId, uint64_t> cq_users_;
  std::vector<Bytes> messages_;
};

Bytes result_message(const nlmsghdr& request, int error) {
  NetlinkMessage message(request, NLMSG_ERROR, NLM_F_CAPPED);
  nlmsgerr result{};
  result.error = -error;
  result.msg = request;
  message.add_bytes(std::as_bytes(std::span(&result, 1)));
  return message.take();
}

Bytes done_message(const nlmsghdr& request) {
  NetlinkMessage message(request, NLMSG_DONE, NLM_F_MULTI);
  const int result = 0;
  message.add_bytes(std::as_bytes(std::span(&result, 1)));
  return message.take();
}

void answer_request(const nlmsghdr& header, std::span<const std::byte> payload, NldevSource& source,
                    std::vector<Bytes>& messages) {
  if ((header.nlmsg_flags & NLM_F_REQUEST) == 0) return;
  std::optional<NetlinkAttributes> attributes = NetlinkAttributes::parse(payload);
  if (RDMA_NL_GET_CLIENT(header.nlmsg_type) != RDMA_NL_NLDEV || !attributes) {
    messages.push_back(result_message(header, EINVAL));
    return;
  }
  const Request request{header, std::move(*attributes)};
  NetlinkAnswer answer(request, source);
  const int error = answer.run();
  if (error != 0) {
    messages.push_back(result_message(header, error));
    return;
  }
  for (Bytes& message : answer.take()) messages.push_back(std::move(message));
  if (request.is_dump()) {
    messages.push_back(done_message(header));
  } else if ((header.nlmsg_flags & NLM_F_ACK) != 0) {
    messages.push_back(result_message(header, 0));
  }
}

}  // namespace

std::vector<Bytes> answer_nldev(std::span<const std::byte> datagram, NldevSource& source) {
  std::vector<Bytes> messages;
  nlmsghdr header;
  while (datagram.size() >= sizeof header) {
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) break;
    answer_request(header, datagram.subspan(sizeof header, header.nlmsg_len - sizeof header),
                   source, messages);
    datagram = datagram.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
  return messages;
}

}  // namespace rocemu::daemon
