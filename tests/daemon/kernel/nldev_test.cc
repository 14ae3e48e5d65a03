// Tests RDMA netlink: the requests of tools, their answers, and invalid input.
#include "emulator/daemon/kernel/nldev.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>

namespace rocemu::daemon {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class Source : public NldevSource {
 public:
  Source() {
    for (const char* name : {"rocemu0", "rocemu1"}) {
      engine::DeviceSnapshot device{};
      device.name = name;
      device.counters.add(engine::Counter::kFramesOut, 7);
      state.devices.push_back(std::move(device));
    }
    engine::QpSnapshot qp{};
    qp.number = {17};
    qp.client = {3};
    qp.type = abi::QpType::kRc;
    qp.state = abi::QpState::kRts;
    qp.dest_qpn = 18;
    state.devices[1].qps.push_back(qp);
  }
  size_t device_count() const override { return state.devices.size(); }
  bool has_device(engine::DeviceIndex index) const override {
    return !state.devices[index.value].removed;
  }
  SysfsDevice device(engine::DeviceIndex index) override {
    SysfsDevice device{state.devices.at(index.value).name, {}, {}, {}};
    device.attr.node_guid = 0x0200'00ff'fe00'0001;
    device.attr.phys_port_cnt = 1;
    device.port.state = 4;
    device.port.phys_state = 5;
    return device;
  }
  engine::FabricSnapshot snapshot() override { return state; }
  std::vector<NldevClient> clients() override { return {{{3}, {1}, 4711}}; }
  std::optional<pid_t> pid_of(engine::CmChannelId channel) const override {
    return channel == engine::CmChannelId{5} ? std::optional<pid_t>(4712) : std::nullopt;
  }

  engine::FabricSnapshot state;
};

struct Message {
  nlmsghdr header;
  Bytes payload;
  /// The attributes are views of the payload, so the message must outlive them.
  NetlinkAttributes attributes() const& { return NetlinkAttributes::parse(payload).value(); }
  NetlinkAttributes attributes() && = delete;
  int error() const {
    EXPECT_EQ(header.nlmsg_type, NLMSG_ERROR);
    int error = 0;
    EXPECT_GE(payload.size(), sizeof(nlmsgerr));
    std::memcpy(&error, payload.data(), sizeof error);
    return -error;
  }
};

constexpr uint16_t type_of(int operation) {
  return static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation));
}

class NldevTest : public testing::Test {
 protected:
  struct Attribute {
    uint16_t type;
    std::string value;
  };
  static Attribute u32(int type, uint32_t value) {
    return {static_cast<uint16_t>(type), std::string(reinterpret_cast<char*>(&value), 4)};
  }
  static Attribute text(int type, const std::string& value) {
    return {static_cast<uint16_t>(type), value + '\0'};
  }
  static Bytes request(uint16_t type, int flags, const std::vector<Attribute>& attributes = {}) {
    nlmsghdr header{};
    header.nlmsg_seq = 99;
    header.nlmsg_pid = 1234;
    NetlinkMessage message(header, type, static_cast<uint16_t>(NLM_F_REQUEST | flags));
    for (const Attribute& attribute : attributes) {
      nlattr head{};
      head.nla_type = attribute.type;
      head.nla_len = static_cast<uint16_t>(sizeof head + attribute.value.size());
      message.add_bytes(std::as_bytes(std::span(&head, 1)));
      message.add_bytes(std::as_bytes(std::span(attribute.value)));
    }
    return message.take();
  }
  std::vector<Message> ask(const Bytes& datagram) {
    std::vector<Message> messages;
    for (const Bytes& bytes : answer_nldev(datagram, source)) {
      Message message{};
      EXPECT_EQ(bytes.size() % NLMSG_ALIGNTO, 0u);
      std::memcpy(&message.header, bytes.data(), sizeof message.header);
      EXPECT_EQ(message.header.nlmsg_len, bytes.size());
      message.payload.assign(bytes.begin() + sizeof message.header, bytes.end());
      messages.push_back(std::move(message));
    }
    return messages;
  }
  std::vector<Message> ask(int operation, int flags,
                           const std::vector<Attribute>& attributes = {}) {
    std::vector<Message> messages = ask(request(type_of(operation), flags, attributes));
    for (const Message& message : messages) {
      EXPECT_EQ(message.header.nlmsg_seq, 99u);
      EXPECT_EQ(message.header.nlmsg_pid, 1234u);
    }
    return messages;
  }
  int error_of(int operation, int flags, const std::vector<Attribute>& attributes = {}) {
    const std::vector<Message> messages = ask(operation, flags, attributes);
    EXPECT_THAT(messages, SizeIs(1));
    return messages.empty() ? -1 : messages[0].error();
  }

  Source source;
};

TEST_F(NldevTest, ADumpNamesAllDevicesAndIsDone) {
  const std::vector<Message> messages = ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  ASSERT_THAT(messages, SizeIs(3));
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(messages[i].header.nlmsg_type, type_of(RDMA_NLDEV_CMD_GET));
    EXPECT_TRUE(messages[i].header.nlmsg_flags & NLM_F_MULTI);
    const NetlinkAttributes attributes = messages[i].attributes();
    EXPECT_EQ(attributes.u32(RDMA_NLDEV_ATTR_DEV_INDEX), i);
    EXPECT_EQ(attributes.text(RDMA_NLDEV_ATTR_DEV_NAME), "rocemu" + std::to_string(i));
    EXPECT_EQ(attributes.u32(RDMA_NLDEV_ATTR_PORT_INDEX), 1u) << "how many ports there are";
  }
  EXPECT_EQ(messages[2].header.nlmsg_type, NLMSG_DONE);
}

TEST_F(NldevTest, OneDeviceIsAnsweredAndAcknowledged) {
  const auto one = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  std::vector<Message> messages = ask(RDMA_NLDEV_CMD_GET, 0, {one});
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].attributes().text(RDMA_NLDEV_ATTR_DEV_NAME), "rocemu1");
  messages = ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK, {one});
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[1].error(), 0);
}

TEST_F(NldevTest, DevicesAndPortsThatAreNotThereAreInvalid) {
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET, 0), EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET, 0, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 2)}), EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, ~0u)}),
            EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, "x"}}), EINVAL);
  const auto device = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 0);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP), EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_PORT_GET, 0, {device}), EINVAL);
  for (const uint32_t port : {0u, 2u}) {
    EXPECT_EQ(error_of(RDMA_NLDEV_CMD_PORT_GET, 0, {device, u32(RDMA_NLDEV_ATTR_PORT_INDEX, port)}),
              EINVAL);
  }
  EXPECT_THAT(ask(RDMA_NLDEV_CMD_PORT_GET, 0, {device, u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1)}),
              SizeIs(1));
}

TEST_F(NldevTest, TheVerbsCharacterDeviceIsTheOneThatCanBeOpened) {
  const auto type = text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
  const auto device = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  const std::vector<Message> messages = ask(RDMA_NLDEV_CMD_GET_CHARDEV, 0, {type, device});
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].attributes().text(RDMA_NLDEV_ATTR_CHARDEV_NAME), "uverbs1");
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET_CHARDEV, 0, {type}), EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET_CHARDEV, 0, {device}), EINVAL);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_GET_CHARDEV, 0,
                     {device, text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm")}),
            ENOENT);
  EXPECT_EQ(
      error_of(RDMA_NLDEV_CMD_GET_CHARDEV, 0, {device, {RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs"}}),
      EINVAL)
      << "without its terminating zero";
}

TEST_F(NldevTest, ObjectsAreDumpedInTablesAndFoundByNumber) {
  const auto device = u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  std::vector<Message> messages = ask(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, {device});
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_TRUE(messages[0].attributes().has(RDMA_NLDEV_ATTR_RES_QP));
  EXPECT_FALSE(messages[0].attributes().has(RDMA_NLDEV_ATTR_RES_LQPN)) << "it is in the table";

  messages = ask(RDMA_NLDEV_CMD_RES_QP_GET, 0, {device, u32(RDMA_NLDEV_ATTR_RES_LQPN, 17)});
  ASSERT_THAT(messages, SizeIs(1));
  const NetlinkAttributes qp = messages[0].attributes();
  EXPECT_EQ(qp.u32(RDMA_NLDEV_ATTR_RES_LQPN), 17u);
  EXPECT_EQ(qp.u32(RDMA_NLDEV_ATTR_RES_RQPN), 18u);
  EXPECT_EQ(qp.u32(RDMA_NLDEV_ATTR_RES_PID), 4711u);

  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_RES_QP_GET, 0, {device, u32(RDMA_NLDEV_ATTR_RES_LQPN, 18)}),
            ENOENT);
  EXPECT_EQ(error_of(RDMA_NLDEV_CMD_RES_QP_GET, 0, {device}), EINVAL);
}

TEST_F(NldevTest, AnIdOfRdmaCmIsOnItsDeviceAndAListenerAtTheWildcardOnEach) {
  engine::RdmaIdSnapshot id{};
  id.number = 7;
  id.channel = {5};
  id.device = engine::DeviceIndex{1};
  id.state = engine::RdmaIdState::kConnect;
  id.port_space = abi::ucma::PortSpace::kTcp;
  id.qp_type = abi::QpType::kRc;
  id.qpn = 17;
  id.source.bytes[0] = AF_INET;
  engine::RdmaIdSnapshot listener{};
  listener.number = 8;
  listener.channel = {6};  // the program of this channel has ended
  listener.state = engine::RdmaIdState::kListen;
  listener.port_space = abi::ucma::PortSpace::kUdp;
  engine::RdmaIdSnapshot idle{};
  idle.number = 9;
  source.state.rdma_ids = {id, listener, idle};

  const auto numbers_of = [&](uint32_t device) {
    std::vector<uint32_t> found;
    for (uint32_t number = 0; number < 12; ++number) {
      const std::vector<Message> messages =
          ask(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0,
              {u32(RDMA_NLDEV_ATTR_DEV_INDEX, device), u32(RDMA_NLDEV_ATTR_RES_CM_IDN, number)});
      if (messages.at(0).header.nlmsg_type != NLMSG_ERROR) found.push_back(number);
    }
    EXPECT_THAT(
        ask(RDMA_NLDEV_CMD_RES_CM_ID_GET, NLM_F_DUMP, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, device)}),
        SizeIs(found.size() + 1));
    return found;
  };
  const auto of_port = [&](uint32_t port) {
    return ask(RDMA_NLDEV_CMD_RES_CM_ID_GET, NLM_F_DUMP,
               {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1), u32(RDMA_NLDEV_ATTR_PORT_INDEX, port)})
        .size();
  };
  EXPECT_EQ(of_port(0), 3u) << "both, and the end";
  EXPECT_EQ(of_port(1), 2u) << "a listener at the wildcard is of no port";
  EXPECT_EQ(of_port(2), 1u);
  EXPECT_EQ(numbers_of(0), std::vector<uint32_t>{8});
  EXPECT_EQ(numbers_of(1), (std::vector<uint32_t>{7, 8}));

  const std::vector<Message> about_one =
      ask(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0,
          {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1), u32(RDMA_NLDEV_ATTR_RES_CM_IDN, 7)});
  const NetlinkAttributes one = about_one.at(0).attributes();
  EXPECT_EQ(one.u32(RDMA_NLDEV_ATTR_PORT_INDEX), 1u);
  EXPECT_EQ(one.u32(RDMA_NLDEV_ATTR_RES_LQPN), 17u);
  EXPECT_EQ(one.u32(RDMA_NLDEV_ATTR_RES_PS), 0x106u);
  EXPECT_EQ(one.u32(RDMA_NLDEV_ATTR_RES_PID), 4712u);
  EXPECT_TRUE(one.has(RDMA_NLDEV_ATTR_RES_SRC_ADDR));
  EXPECT_FALSE(one.has(RDMA_NLDEV_ATTR_RES_DST_ADDR)) << "there is none";
  const std::vector<Message> about_other =
      ask(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0,
          {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 0), u32(RDMA_NLDEV_ATTR_RES_CM_IDN, 8)});
  const NetlinkAttributes other = about_other.at(0).attributes();
  EXPECT_FALSE(other.has(RDMA_NLDEV_ATTR_PORT_INDEX)) << "of no port, but of the device";
  EXPECT_FALSE(other.has(RDMA_NLDEV_ATTR_RES_LQPN));
  EXPECT_FALSE(other.has(RDMA_NLDEV_ATTR_RES_PID));
}

TEST_F(NldevTest, OtherOperationsAndSubsystemsAreRefused) {
  for (const int operation :
       std::initializer_list<int>{RDMA_NLDEV_CMD_SET, RDMA_NLDEV_CMD_NEWLINK,
                                  RDMA_NLDEV_CMD_SYS_SET, RDMA_NLDEV_CMD_STAT_SET, 1000}) {
    EXPECT_EQ(error_of(operation, 0), EOPNOTSUPP);
    EXPECT_EQ(error_of(operation, NLM_F_DUMP), EOPNOTSUPP);
  }
  const std::vector<Message> messages = ask(request(RDMA_NL_GET_TYPE(RDMA_NL_IWCM, 1), 0));
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].error(), EINVAL);
}

TEST_F(NldevTest, AnswersEachRequestOfADatagram) {
  Bytes both = request(type_of(RDMA_NLDEV_CMD_SYS_GET), 0);
  const Bytes second = request(type_of(RDMA_NLDEV_CMD_SET), 0);
  both.insert(both.end(), second.begin(), second.end());
  const std::vector<Message> messages = ask(both);
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[1].error(), EOPNOTSUPP);
}

TEST_F(NldevTest, LengthsThatDoNotAddUpAreRefused) {
  EXPECT_THAT(ask(Bytes{}), IsEmpty());
  EXPECT_THAT(ask(Bytes(sizeof(nlmsghdr))), IsEmpty());  // its length field is 0
  const Bytes whole = request(type_of(RDMA_NLDEV_CMD_GET), 0, {u32(RDMA_NLDEV_ATTR_DEV_INDEX, 1)});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ask(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))), IsEmpty());
  }
  for (const uint16_t length :
       std::initializer_list<uint16_t>{0, 3, 9, 0xffff}) {  // of the attribute
    Bytes wrong = whole;
    std::memcpy(&wrong[sizeof(nlmsghdr)], &length, sizeof length);
    const std::vector<Message> messages = ask(wrong);
    ASSERT_THAT(messages, SizeIs(1)) << length;
    EXPECT_EQ(messages[0].error(), EINVAL) << length;
  }
}

TEST_F(NldevTest, SurvivesRandomRequests) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 generator(seed);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(generator()) % limit; };
    std::vector<Attribute> attributes;
    for (uint32_t i = below(4); i > 0; --i) {
      attributes.push_back(u32(static_cast<int>(below(100)), below(20)));
    }
    Bytes bytes =
        request(type_of(static_cast<int>(below(30))), static_cast<int>(below(0x400)), attributes);
    for (uint32_t i = below(6); i > 0; --i) {
      bytes[below(static_cast<uint32_t>(bytes.size()))] = static_cast<std::byte>(below(256));
    }
    if (below(2) == 0) bytes.resize(below(static_cast<uint32_t>(bytes.size())));
    ask(bytes);
  }
}

}  // namespace
}  // namespace rocemu::daemon
