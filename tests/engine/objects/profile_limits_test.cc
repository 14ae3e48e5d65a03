// Tests every limit that a profile reports: requests up to the limit succeed, and one more is
// refused with the error of the NIC's driver.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "emulator/engine/verbs/profile_limits.h"
#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using abi::Op;
using engine::ClientId;
using engine::DeviceIndex;
using engine::DeviceProfile;

/// Returns a profile of a device with small limits, all different from each other.
DeviceProfile small_profile() {
  DeviceProfile profile = *engine::generic_profile();
  profile.name = "small";
  abi::DeviceAttr& attr = profile.attr;
  attr.max_qp = 3;
  attr.max_qp_wr = 40;
  attr.max_sge = 5;
  attr.max_cq = 4;
  attr.max_cqe = 60;
  attr.max_mr = 6;
  attr.max_mr_size = 8192;
  attr.max_pd = 7;
  attr.max_srq = 2;
  attr.max_srq_wr = 30;
  attr.max_srq_sge = 3;
  attr.max_qp_rd_atom = 9;
  attr.max_qp_init_rd_atom = 8;
  attr.max_cq_moderation_count = 11;
  attr.max_cq_moderation_period = 12;
  attr.max_dm_size = 4096;
  attr.max_inline_data = 100;
  return profile;
}

engine::FabricConfig fabric_of(const DeviceProfile& profile) {
  engine::FabricConfig fabric = engine::default_fabric(1);
  fabric.devices[0].profile = std::make_shared<const DeviceProfile>(profile);
  return fabric;
}

/// A request whose body contains a number that the profile limits.
struct Limited {
  const char* name;
  Op op;
  std::function<void(abi::RequestBody&, uint64_t)> ask;
  uint64_t limit;
  int error;
};

std::vector<Limited> limits() {
  using Body = abi::RequestBody;
  const auto rc = [](Body& in) { in.create_qp.type = abi::QpType::kRc; };
  return {
      {"max_qp_wr, send", Op::kCreateQp,
       [=](Body& in, uint64_t n) { rc(in), in.create_qp.cap.max_send_wr = uint32_t(n); }, 40,
       EINVAL},
      {"max_qp_wr, receive", Op::kCreateQp,
       [=](Body& in, uint64_t n) { rc(in), in.create_qp.cap.max_recv_wr = uint32_t(n); }, 40,
       EINVAL},
      {"max_sge, send", Op::kCreateQp,
       [=](Body& in, uint64_t n) { rc(in), in.create_qp.cap.max_send_sge = uint32_t(n); }, 5,
       EINVAL},
      {"max_sge, receive", Op::kCreateQp,
       [=](Body& in, uint64_t n) { rc(in), in.create_qp.cap.max_recv_sge = uint32_t(n); }, 5,
       EINVAL},
      {"max_inline_data", Op::kCreateQp,
       [=](Body& in, uint64_t n) { rc(in), in.create_qp.cap.max_inline_data = uint32_t(n); }, 100,
       EINVAL},
      {"max_cqe", Op::kCreateCq, [](Body& in, uint64_t n) { in.create_cq.capacity = uint32_t(n); },
       60, EINVAL},
      {"max_cqe, resized", Op::kResizeCq,
       [](Body& in, uint64_t n) { in.resize_cq.capacity = uint32_t(n); }, 60, EINVAL},
      {"max_cq_count", Op::kModifyCq,
       [](Body& in, uint64_t n) { in.modify_cq.count = uint32_t(n); }, 11, EINVAL},
      {"max_cq_period", Op::kModifyCq,
       [](Body& in, uint64_t n) { in.modify_cq.period = uint32_t(n); }, 12, EINVAL},
      {"max_srq_wr", Op::kCreateSrq,
       [](Body& in, uint64_t n) { in.create_srq.max_wr = uint32_t(n); }, 30, EINVAL},
      {"max_srq_sge", Op::kCreateSrq,
       [](Body& in, uint64_t n) { in.create_srq.max_sge = uint32_t(n); }, 3, EINVAL},
      {"max_mr_size", Op::kRegMr, [](Body& in, uint64_t n) { in.reg_mr.length = n; }, 8192, EINVAL},
      {"max_dm_size", Op::kAllocDm, [](Body& in, uint64_t n) { in.alloc_dm.length = n; }, 4096,
       ENOMEM},
      {"max_qp_init_rd_atom", Op::kModifyQp,
       [](Body& in, uint64_t n) {
         in.modify_qp.mask = abi::kAttrMaxQpRdAtomic;
         in.modify_qp.attr.max_rd_atomic = uint8_t(n);
       },
       8, EINVAL},
      {"max_qp_rd_atom", Op::kModifyQp,
       [](Body& in, uint64_t n) {
         in.modify_qp.mask = abi::kAttrMaxDestRdAtomic;
         in.modify_qp.attr.max_dest_rd_atomic = uint8_t(n);
       },
       9, EINVAL},
  };
}

TEST(ProfileLimits, AllowWhatTheyShowAndNothingBeyond) {
  const DeviceProfile profile = small_profile();
  for (const Limited& limited : limits()) {
    abi::Request request{};
    request.op = limited.op;
    limited.ask(request.body, limited.limit);
    EXPECT_FALSE(refusal_of(profile, request, 0)) << limited.name;
    limited.ask(request.body, limited.limit + 1);
    const auto refusal = refusal_of(profile, request, 0);
    ASSERT_TRUE(refusal) << limited.name;
    EXPECT_EQ(refusal->error, limited.error) << limited.name;
    EXPECT_NE(refusal->what.find(std::to_string(limited.limit)), std::string::npos)
        << refusal->what;
  }
}

TEST(ProfileLimits, CountTheObjectsOfAllClientsOfTheDevice) {
  Bench bench{fabric_of(small_profile())};
  Client first{bench, ClientId{1}, DeviceIndex{0}}, second{bench, ClientId{2}, DeviceIndex{0}};
  std::vector<uint32_t> pds;
  for (int i = 0; i < 7; ++i) {
    Client& client = i % 2 == 0 ? first : second;
    pds.push_back(client.alloc_pd());
    EXPECT_EQ(client.error, 0);
  }
  second.alloc_pd();
  EXPECT_EQ(second.error, ENOMEM);
  EXPECT_EQ(first.dealloc_pd(pds[0]), 0);
  second.alloc_pd();
  EXPECT_EQ(second.error, 0);
  for (int i = 0; i < 4; ++i) {
    first.create_cq(1);
    EXPECT_EQ(first.error, 0);
  }
  second.create_cq(1);
  EXPECT_EQ(second.error, ENOMEM);
}

TEST(ProfileLimits, AnswerOneQpTooManyAsTheDriverDoes) {
  DeviceProfile profile = small_profile();
  profile.qp.exhausted_error = EBUSY;
  Bench bench{fabric_of(profile)};
  Client client{bench, ClientId{1}, DeviceIndex{0}};
  const uint32_t pd = client.alloc_pd(), cq = client.create_cq(10);
  const abi::QpCap cap{.max_send_wr = 1,
                       .max_recv_wr = 1,
                       .max_send_sge = 1,
                       .max_recv_sge = 1,
                       .max_inline_data = 0};
  for (int i = 0; i < 3; ++i) {
    client.create_qp(pd, cq, cq, cap);
    EXPECT_EQ(client.error, 0);
  }
  client.create_qp(pd, cq, cq, cap);
  EXPECT_EQ(client.error, EBUSY);
}

abi::Request qp_request(const abi::QpCap& cap, abi::QpType type = abi::QpType::kRc) {
  abi::Request request{};
  request.op = Op::kCreateQp;
  request.body.create_qp.type = type;
  request.body.create_qp.cap = cap;
  return request;
}

TEST(ProfileLimits, MayBeWhatIsAdvertisedOrWhatIsAccepted) {
  DeviceProfile profile = small_profile();
  profile.qp.max_send_sge = 6;
  profile.qp.max_recv_sge = 5;
  profile.qp.max_send_wr = 400;
  EXPECT_FALSE(refusal_of(profile,
                          qp_request({.max_send_wr = 400,
                                      .max_recv_wr = 40,
                                      .max_send_sge = 6,
                                      .max_recv_sge = 5,
                                      .max_inline_data = 0}),
                          0));
  EXPECT_TRUE(refusal_of(profile,
                         qp_request({.max_send_wr = 401,
                                     .max_recv_wr = 0,
                                     .max_send_sge = 0,
                                     .max_recv_sge = 0,
                                     .max_inline_data = 0}),
                         0));
  EXPECT_TRUE(refusal_of(profile,
                         qp_request({.max_send_wr = 0,
                                     .max_recv_wr = 0,
                                     .max_send_sge = 0,
                                     .max_recv_sge = 6,
                                     .max_inline_data = 0}),
                         0));
}

TEST(ProfileLimits, LeaveErrnoUntouchedIfTheProviderDoes) {
  DeviceProfile profile = small_profile();
  profile.qp.limit_error = profile.qp.type_error = 0;
  profile.qp.types = 1u << static_cast<uint32_t>(abi::QpType::kRc);
  const abi::QpCap too_many{.max_send_wr = 41,
                            .max_recv_wr = 0,
                            .max_send_sge = 0,
                            .max_recv_sge = 0,
                            .max_inline_data = 0};
  EXPECT_EQ(refusal_of(profile, qp_request(too_many), 0)->error, abi::kErrnoUntouched);
  EXPECT_EQ(refusal_of(profile, qp_request({}, abi::QpType::kUc), 0)->error, abi::kErrnoUntouched);
}

TEST(ProfileLimits, GrantInlineDataAsTheDriverDoes) {
  DeviceProfile profile = small_profile();
  profile.posts.no_inline_room = 1;
  const auto granted = [&](uint32_t asked, uint32_t sges) {
    const abi::Request request = as_granted(profile, qp_request({.max_send_wr = 1,
                                                                 .max_recv_wr = 1,
                                                                 .max_send_sge = sges,
                                                                 .max_recv_sge = 1,
                                                                 .max_inline_data = asked}));
    return request.body.create_qp.cap.max_inline_data;
  };
  EXPECT_EQ(granted(0, 2), 32u);    // the space of two SGEs of 16 bytes
  EXPECT_EQ(granted(0, 20), 100u);  // the grant is at most the device's limit
  profile.posts.no_inline_room = 2;
  EXPECT_EQ(granted(0, 2), 0u);
  EXPECT_EQ(granted(70, 2), 70u);
  profile.qp.least_inline = 60;  // mlx5: 60 bytes even if the program requests none
  EXPECT_EQ(granted(0, 1), 60u);
  EXPECT_EQ(granted(61, 1), 61u);
  profile.qp.inline_above = engine::InlineAbove::kCap;  // hns
  EXPECT_EQ(granted(5000, 1), 100u);
  EXPECT_FALSE(refusal_of(profile,
                          qp_request({.max_send_wr = 1,
                                      .max_recv_wr = 1,
                                      .max_send_sge = 1,
                                      .max_recv_sge = 1,
                                      .max_inline_data = 5000}),
                          0));
}

TEST(ProfileLimits, RefuseVerbsThatTheDriverLacks) {
  DeviceProfile profile = small_profile();
  profile.refused = {{Op::kAllocMw, EOPNOTSUPP}};
  abi::Request request{};
  request.op = Op::kAllocMw;
  EXPECT_EQ(refusal_of(profile, request, 0)->error, EOPNOTSUPP);
  profile.attr.max_srq = 0;
  request.op = Op::kCreateSrq;
  EXPECT_EQ(refusal_of(profile, request, 0)->error, EOPNOTSUPP);
  profile.attr.odp_general_caps = 0;
  request.op = Op::kRegMr;
  request.body.reg_mr.access = abi::kAccessOnDemand;
  EXPECT_EQ(refusal_of(profile, request, 0)->error, EOPNOTSUPP);
  profile.attr.device_cap_flags = 0;
  request.op = Op::kOpenXrcd;
  EXPECT_EQ(refusal_of(profile, request, 0)->error, EOPNOTSUPP);
}

TEST(ProfileLimits, AreOnlyThoseOfTheEngineForGeneric) {
  abi::Request request = qp_request({.max_send_wr = 1048576,
                                     .max_recv_wr = 1048576,
                                     .max_send_sge = 32,
                                     .max_recv_sge = 32,
                                     .max_inline_data = 1024});
  EXPECT_FALSE(refusal_of(*engine::generic_profile(), request, 0));
}

TEST(GidTable, HasAnEntryOfEachTypeForEachAddress) {
  DeviceProfile profile = small_profile();
  profile.gid_types = {engine::GidType::kRoceV1, engine::GidType::kRoceV2};
  profile.link_local_first = true;
  engine::DeviceConfig device = engine::default_fabric(2).devices[1];  // 127.0.0.2 and fe80::
  device.profile = std::make_shared<const DeviceProfile>(profile);
  const std::vector<wire::IpAddress> before = device.addresses;
  ASSERT_EQ(before.size(), 2u);
  arrange_gids(device);
  EXPECT_EQ(device.addresses,
            (std::vector<wire::IpAddress>{before[1], before[1], before[0], before[0]}));
}

}  // namespace
}  // namespace rocemu::test
