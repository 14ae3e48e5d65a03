// Tests which attributes the state changes of all QP types but RC need and allow. The tables here
// are independent of the engine's (ibv_modify_qp(3); IBTA vol 1, tables "QP State Transition
// Properties"; annex A14 for XRC).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/verbs/qp_transitions.h"
#include "tests/support/bench.h"
#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::QpType;
using enum abi::QpAttrMask;

struct Row {
  QpState from, to;
  uint32_t required, optional;
};

constexpr uint32_t kAccess = kAttrAccessFlags, kMig = kAttrPathMigState;

const std::vector<Row> kUcTable = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAccess},
    {QpState::kInit, QpState::kRtr, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn,
     kAttrPkeyIndex | kAccess},
    {QpState::kRtr, QpState::kRts, kAttrSqPsn, kAttrCurState | kAccess | kMig},
    {QpState::kRts, QpState::kRts, 0, kAttrCurState | kAccess | kMig},
    {QpState::kRts, QpState::kSqd, 0, kAttrEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurState | kAccess | kMig},
    {QpState::kSqd, QpState::kSqd, 0, kAttrAv | kAttrPkeyIndex | kAccess | kMig},
    {QpState::kSqe, QpState::kRts, 0, kAttrCurState | kAccess},
};

const std::vector<Row> kUdTable = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrQkey},
    {QpState::kInit, QpState::kRtr, 0, kAttrPkeyIndex | kAttrQkey},
    {QpState::kRtr, QpState::kRts, kAttrSqPsn, kAttrCurState | kAttrQkey},
    {QpState::kRts, QpState::kRts, 0, kAttrCurState | kAttrQkey},
    {QpState::kRts, QpState::kSqd, 0, kAttrEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurState | kAttrQkey},
    {QpState::kSqd, QpState::kSqd, 0, kAttrPkeyIndex | kAttrQkey},
    {QpState::kSqe, QpState::kRts, 0, kAttrCurState | kAttrQkey},
};

const std::vector<Row> kXrcSendTable = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAccess},
    {QpState::kInit, QpState::kRtr, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn,
     kAttrPkeyIndex | kAccess},
    {QpState::kRtr, QpState::kRts,
     kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
     kAttrCurState | kAccess | kMig},
    {QpState::kRts, QpState::kRts, 0, kAttrCurState | kAccess | kMig},
    {QpState::kRts, QpState::kSqd, 0, kAttrEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurState | kAccess | kMig},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic |
         kAttrPkeyIndex | kAccess | kMig},
};

const std::vector<Row> kXrcRecvTable = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAccess},
    {QpState::kInit, QpState::kRtr,
     kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
     kAttrPkeyIndex | kAccess},
    {QpState::kRtr, QpState::kRts, kAttrTimeout | kAttrSqPsn,
     kAttrCurState | kAccess | kMig | kAttrMinRnrTimer},
    {QpState::kRts, QpState::kRts, 0, kAttrCurState | kAccess | kMig | kAttrMinRnrTimer},
    {QpState::kRts, QpState::kSqd, 0, kAttrEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurState | kAccess | kMig | kAttrMinRnrTimer},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrMaxDestRdAtomic | kAttrMinRnrTimer | kAttrPkeyIndex |
         kAccess | kMig},
};

struct TypeTable {
  QpType type;
  const std::vector<Row>* rows;
};

class QpAttributesOfType : public testing::TestWithParam<TypeTable> {};

TEST_P(QpAttributesOfType, EveryTransitionNeedsAndAllowsWhatTheTableSays) {
  for (uint32_t f = 0; f <= static_cast<uint32_t>(QpState::kErr); ++f) {
    for (uint32_t t = 0; t <= static_cast<uint32_t>(QpState::kErr); ++t) {
      const auto from = static_cast<QpState>(f);
      const auto to = static_cast<QpState>(t);
      Row row{from, to, 0, 0};
      // 10.3.1: every state can change to Reset and Error.
      bool exists = to == QpState::kReset || to == QpState::kErr;
      for (const Row& one : *GetParam().rows) {
        if (one.from == from && one.to == to) {
          row = one;
          exists = true;
        }
      }
      abi::QpAttr attr{};
      attr.qp_state = t;
      attr.cur_qp_state = f;
      attr.path_mtu = static_cast<uint32_t>(abi::Mtu::k1024);
      attr.port_num = 1;
      attr.timeout = 14;
      const auto check = [&](uint32_t mask, bool good) {
        EXPECT_EQ(engine::check_attributes(GetParam().type, from, attr, mask, abi::Mtu::k4096),
                  good ? 0 : EINVAL)
            << to_string(from) << " to " << to_string(to) << ", mask 0x" << std::hex << mask;
      };
      check(kAttrState | row.required, exists);
      if (!exists) continue;
      for (uint32_t bit = 2; bit != 0; bit <<= 1) {
        if ((row.required & bit) != 0) {
          check(kAttrState | (row.required & ~bit), false);
        } else {
          check(kAttrState | row.required | bit, (row.optional & bit) != 0);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, QpAttributesOfType,
                         testing::Values(TypeTable{QpType::kUc, &kUcTable},
                                         TypeTable{QpType::kUd, &kUdTable},
                                         TypeTable{QpType::kXrcSend, &kXrcSendTable},
                                         TypeTable{QpType::kXrcRecv, &kXrcRecvTable}),
                         [](const auto& tested) {
                           switch (tested.param.type) {
                             case QpType::kUc:
                               return "UC";
                             case QpType::kUd:
                               return "UD";
                             case QpType::kXrcSend:
                               return "XrcSend";
                             default:
                               return "XrcRecv";
                           }
                         });

}  // namespace
}  // namespace rocemu::test
