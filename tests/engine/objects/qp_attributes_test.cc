// Tests which attributes each state change of an RC QP needs and allows (IBTA vol 1, 10.3.1 and
// table "QP State Transition Properties"; ibv_modify_qp(3)). The tests have a table that is
// independent of the engine's.
#include "emulator/engine/verbs/qp_transitions.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpAttr;
using abi::QpState;
using enum abi::QpAttrMask;

constexpr std::array kStates = {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                                QpState::kSqd,   QpState::kSqe,  QpState::kErr};

struct Row {
  QpState from, to;
  uint32_t required, optional;
};

// The specification's table has attributes for alternate paths, but a RoCE port has none, so they
// are refused with EINVAL. (Linux, core/verbs.c, qp_state_table; cma: "alternate path is not
// supported on RoCE".)
constexpr uint32_t kAnytime = kAttrAccessFlags | kAttrPathMigState | kAttrMinRnrTimer;
const std::vector<Row> kTable = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags},
    {QpState::kInit, QpState::kRtr,
     kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
     kAttrPkeyIndex | kAttrAccessFlags},
    {QpState::kRtr, QpState::kRts,
     kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
     kAttrCurState | kAnytime},
    {QpState::kRts, QpState::kRts, 0, kAttrCurState | kAnytime},
    {QpState::kRts, QpState::kSqd, 0, kAttrEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurState | kAnytime},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic |
         kAttrMaxDestRdAtomic | kAttrPkeyIndex | kAnytime},
    {QpState::kReset, QpState::kReset, 0, 0},
    {QpState::kInit, QpState::kReset, 0, 0},
    {QpState::kRtr, QpState::kReset, 0, 0},
    {QpState::kRts, QpState::kReset, 0, 0},
    {QpState::kSqd, QpState::kReset, 0, 0},
    {QpState::kSqe, QpState::kReset, 0, 0},
    {QpState::kErr, QpState::kReset, 0, 0},
    {QpState::kReset, QpState::kErr, 0, 0},
    {QpState::kInit, QpState::kErr, 0, 0},
    {QpState::kRtr, QpState::kErr, 0, 0},
    {QpState::kRts, QpState::kErr, 0, 0},
    {QpState::kSqd, QpState::kErr, 0, 0},
    {QpState::kSqe, QpState::kErr, 0, 0},
    {QpState::kErr, QpState::kErr, 0, 0},
};

const Row* row_of(QpState from, QpState to) {
  for (const Row& row : kTable) {
    if (row.from == from && row.to == to) return &row;
  }
  return nullptr;
}

/// Returns attributes with valid values.
QpAttr good_attributes(QpState from, QpState to) {
  QpAttr attr{};
  attr.qp_state = static_cast<uint32_t>(to);
  attr.cur_qp_state = static_cast<uint32_t>(from);
  attr.path_mtu = static_cast<uint32_t>(abi::Mtu::k1024);
  attr.port_num = 1;
  attr.dest_qp_num = Script::kPeerQpn;
  attr.ah_attr = address_vector(wire::IpAddress::from_v4(10, 0, 0, 2));
  attr.timeout = 14;
  return attr;
}

void check(QpState from, const QpAttr& attr, uint32_t mask, int want) {
  EXPECT_EQ(engine::check_attributes(abi::QpType::kRc, from, attr, mask, abi::Mtu::k4096), want)
      << to_string(from) << " to " << to_string(static_cast<QpState>(attr.qp_state)) << ", mask 0x"
      << std::hex << mask;
}

TEST(QpAttributes, EveryTransitionNeedsAndAllowsWhatTheTableSays) {
  for (const QpState from : kStates) {
    for (const QpState to : kStates) {
      const QpAttr attr = good_attributes(from, to);
      const Row* row = row_of(from, to);
      const uint32_t required = kAttrState | (row != nullptr ? row->required : 0);
      check(from, attr, required, row != nullptr ? 0 : EINVAL);
      for (uint32_t bit = 2; bit != 0; bit <<= 1) {
        if (row == nullptr) {
          check(from, attr, kAttrState | bit, EINVAL);
        } else if ((row->required & bit) != 0) {
          check(from, attr, required & ~bit, EINVAL);
        } else {
          check(from, attr, required | bit, (row->optional & bit) != 0 ? 0 : EINVAL);
        }
      }
      if (row != nullptr) check(from, attr, required | row->optional, 0);
    }
  }
}

// ibv_modify_qp(3) without IBV_QP_STATE: the state does not change, so the required and allowed
// attributes are those of a change from the state to itself.
TEST(QpAttributes, WithoutAStateTheQpStaysWhereItIs) {
  for (const QpState from : kStates) {
    const QpAttr attr = good_attributes(from, QpState::kSqe);  // the new state is ignored
    const Row* row = row_of(from, from);
    check(from, attr, 0, row != nullptr ? 0 : EINVAL);
    for (uint32_t bit = 2; bit != 0; bit <<= 1) {
      check(from, attr, bit, row != nullptr && (row->optional & bit) != 0 ? 0 : EINVAL);
    }
  }
}

TEST(QpAttributes, NoStateBeyondErr) {
  for (const uint32_t state : {7u, 8u, 0xffffffffu}) {
    QpAttr attr = good_attributes(QpState::kReset, QpState::kInit);
    attr.qp_state = state;
    check(QpState::kReset, attr, kAttrState, EINVAL);
  }
}

// ibv_modify_qp(3): "If any of the modify attributes or the modify mask are invalid, none of the
// attributes will be modified (including the QP state)". Also tests the errno.
TEST(QpAttributes, ARefusedChangeChangesNothing) {
  for (const QpState from : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                             QpState::kSqd, QpState::kErr}) {
    ScriptOptions options;
    options.state = from;
    for (const QpState to : kStates) {
      const Row* row = row_of(from, to);
      const uint32_t required = kAttrState | (row != nullptr ? row->required : 0);
      for (uint32_t bit = 2; bit != 0; bit <<= 1) {
        const uint32_t mask = (required & bit) != 0 ? required & ~bit : required | bit;
        if (row != nullptr && (row->optional & bit) != 0) continue;
        Script s(options);
        const QpAttr before = s.client().query_qp(s.qpn());
        QpAttr attr = good_attributes(from, to);
        attr.qp_access_flags = abi::kAccessRemoteWrite;
        attr.min_rnr_timer = 30;
        attr.timeout = 31;
        EXPECT_EQ(s.client().modify_qp(s.qpn(), attr, mask), EINVAL);
        const QpAttr after = s.client().query_qp(s.qpn());
        EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0)
            << to_string(from) << " to " << to_string(to) << ", mask 0x" << std::hex << mask;
        EXPECT_TRUE(s.bench().log.empty());
      }
    }
  }
}

TEST(QpAttributes, AnAllowedChangeIsMade) {
  for (const Row& row : kTable) {
    if (row.from == QpState::kSqe) continue;  // an RC QP never enters SQE
    ScriptOptions options;
    options.state = row.from;
    Script s(options);
    EXPECT_EQ(s.client().modify_qp(s.qpn(), good_attributes(row.from, row.to),
                                   kAttrState | row.required | row.optional),
              0)
        << to_string(row.from) << " to " << to_string(row.to);
    s.expect_state(row.to);
    s.bench().log.clear();
  }
}

// ---- Values -----------------------------------------------------------------------------------

struct Range {
  const char* name;
  QpState from, to;
  uint32_t bit;
  void (*set)(QpAttr& attr, uint32_t value);
  std::vector<uint32_t> good, bad;
};

class AttributeRange : public testing::TestWithParam<Range> {};

TEST_P(AttributeRange, IsChecked) {
  const Range& range = GetParam();
  const Row* row = row_of(range.from, range.to);
  const uint32_t mask = kAttrState | row->required | range.bit;
  QpAttr attr = good_attributes(range.from, range.to);
  for (const uint32_t value : range.good) {
    range.set(attr, value);
    check(range.from, attr, mask, 0);
  }
  for (const uint32_t value : range.bad) {
    range.set(attr, value);
    check(range.from, attr, mask, EINVAL);
  }
}

template <auto Member>
void set_member(QpAttr& attr, uint32_t value) {
  attr.*Member = static_cast<std::remove_reference_t<decltype(attr.*Member)>>(value);
}

INSTANTIATE_TEST_SUITE_P(Of, AttributeRange,
                         testing::Values(Range{"Port",
                                               QpState::kReset,
                                               QpState::kInit,
                                               kAttrPort,
                                               set_member<&QpAttr::port_num>,
                                               {1},
                                               {0, 2, 255}},
                                         Range{"PkeyIndex",
                                               QpState::kReset,
                                               QpState::kInit,
                                               kAttrPkeyIndex,
                                               set_member<&QpAttr::pkey_index>,
                                               {0},
                                               {1, 0xffff}},
                                         Range{"PathMtu",
                                               QpState::kInit,
                                               QpState::kRtr,
                                               kAttrPathMtu,
                                               set_member<&QpAttr::path_mtu>,
                                               {1, 2, 3, 4, 5},
                                               {0, 6, 256, 0xffffffff}},
                                         Range{"DestQpn",
                                               QpState::kInit,
                                               QpState::kRtr,
                                               kAttrDestQpn,
                                               set_member<&QpAttr::dest_qp_num>,
                                               {0, 1, 0xffffff},
                                               {0x1000000, 0xffffffff}},
                                         // Programs pass lrand48() as a PSN: such values are not
                                         // refused but truncated to 24 bits.
                                         Range{"RqPsn",
                                               QpState::kInit,
                                               QpState::kRtr,
                                               kAttrRqPsn,
                                               set_member<&QpAttr::rq_psn>,
                                               {0, 0xffffff, 0x1000000, 0xffffffff},
                                               {}},
                                         Range{"SqPsn",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrSqPsn,
                                               set_member<&QpAttr::sq_psn>,
                                               {0, 0xffffff, 0x1000000, 0xffffffff},
                                               {}},
                                         Range{"MinRnrTimer",
                                               QpState::kInit,
                                               QpState::kRtr,
                                               kAttrMinRnrTimer,
                                               set_member<&QpAttr::min_rnr_timer>,
                                               {0, 31},
                                               {32, 255}},
                                         Range{"MaxDestRdAtomic",
                                               QpState::kInit,
                                               QpState::kRtr,
                                               kAttrMaxDestRdAtomic,
                                               set_member<&QpAttr::max_dest_rd_atomic>,
                                               {0, 1, 128},
                                               {129, 255}},
                                         Range{"Timeout",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrTimeout,
                                               set_member<&QpAttr::timeout>,
                                               {0, 31},
                                               {32, 255}},
                                         Range{"RetryCnt",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrRetryCnt,
                                               set_member<&QpAttr::retry_cnt>,
                                               {0, 7},
                                               {8, 255}},
                                         Range{"RnrRetry",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrRnrRetry,
                                               set_member<&QpAttr::rnr_retry>,
                                               {0, 7},
                                               {8, 255}},
                                         Range{"MaxRdAtomic",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrMaxQpRdAtomic,
                                               set_member<&QpAttr::max_rd_atomic>,
                                               {0, 1, 128},
                                               {129, 255}},
                                         // ibv_modify_qp(3), cur_qp_state: "Assume this is the
                                         // current QP state": it must really be the current state.
                                         Range{"CurStateRtr",
                                               QpState::kRtr,
                                               QpState::kRts,
                                               kAttrCurState,
                                               set_member<&QpAttr::cur_qp_state>,
                                               {2},
                                               {0, 1, 3, 4, 5, 6, 7}},
                                         Range{"CurStateRts",
                                               QpState::kRts,
                                               QpState::kRts,
                                               kAttrCurState,
                                               set_member<&QpAttr::cur_qp_state>,
                                               {3},
                                               {0, 1, 2, 4, 5, 6, 7}},
                                         Range{"CurStateSqd",
                                               QpState::kSqd,
                                               QpState::kRts,
                                               kAttrCurState,
                                               set_member<&QpAttr::cur_qp_state>,
                                               {4},
                                               {0, 1, 2, 3, 5, 6, 7}}),
                         [](const testing::TestParamInfo<Range>& one) { return one.param.name; });

TEST(QpAttributes, NoPathMtuAboveThePortsActiveMtu) {
  QpAttr attr = good_attributes(QpState::kInit, QpState::kRtr);
  const uint32_t mask = kAttrState | row_of(QpState::kInit, QpState::kRtr)->required;
  for (uint32_t active = 1; active <= 5; ++active) {
    for (uint32_t mtu = 1; mtu <= 5; ++mtu) {
      attr.path_mtu = mtu;
      EXPECT_EQ(engine::check_attributes(abi::QpType::kRc, QpState::kInit, attr, mask,
                                         static_cast<abi::Mtu>(active)),
                mtu <= active ? 0 : EINVAL);
    }
  }
}

// ---- Results of query_qp -----------------------------------------------------------------------

TEST(QpAttributes, QueryReturnsTheAttributesThatWereSet) {
  ScriptOptions options;
  options.connection = {.mtu = abi::Mtu::k2048,
                        .sq_psn = 0xab123456,
                        .rq_psn = 0xcd654321,
                        .timeout = 13,
                        .retry_cnt = 5,
                        .rnr_retry = 6,
                        .min_rnr_timer = 21};
  Script s(options);
  const QpAttr attr = s.client().query_qp(s.qpn());
  EXPECT_EQ(attr.qp_state, static_cast<uint32_t>(QpState::kRts));
  EXPECT_EQ(attr.cur_qp_state, static_cast<uint32_t>(QpState::kRts));
  EXPECT_EQ(attr.path_mtu, static_cast<uint32_t>(abi::Mtu::k2048));
  EXPECT_EQ(attr.sq_psn, 0x123456u);
  EXPECT_EQ(attr.rq_psn, 0x654321u);
  EXPECT_EQ(attr.timeout, 13);
  EXPECT_EQ(attr.retry_cnt, 5);
  EXPECT_EQ(attr.rnr_retry, 6);
  EXPECT_EQ(attr.min_rnr_timer, 21);
  EXPECT_EQ(attr.dest_qp_num, Script::kPeerQpn);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.cap.max_send_wr, options.cap.max_send_wr);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
}

// Linux: rxe_qp_to_attr() returns req.psn and resp.psn; mlx5 next_send_psn and next_rcv_psn.
TEST(QpAttributes, QueryReturnsTheNextPsnsToSendAndToReceive) {
  ScriptOptions options;
  options.connection = {.mtu = abi::Mtu::k1024, .sq_psn = 0xfffffe, .rq_psn = 0x20};
  Script s(options);
  const auto expect_psns = [&](uint32_t sent, uint32_t expected) {
    const QpAttr attr = s.client().query_qp(s.qpn());
    EXPECT_EQ(attr.sq_psn, sent);
    EXPECT_EQ(attr.rq_psn, expected);
  };
  expect_psns(0xfffffe, 0x20);
  s.at(0ms).app_posts_send(1, 8).expect({send_only(psn(0xfffffe))});
  expect_psns(0xffffff, 0x20);
  s.app_posts_send(2, 1025).expect({send_first(psn(0xffffff)), send_last(psn(0))});
  expect_psns(1, 0x20);
  s.at(1ms).wire_delivers(ack(psn(0xfffffe))).expect({completion(1)});
  expect_psns(1, 0x20);
  // Both packets are sent again, but a query returns the PSN that the next new request will have.
  s.wire_delivers(nak(psn(0xffffff), wire::NakCode::kPsnSequenceError))
      .expect({send_first(psn(0xffffff)), send_last(psn(0))});
  expect_psns(1, 0x20);
  s.app_posts_recv(3);
  s.wire_delivers(send_only(psn(0x20))).expect({received(3), ack(psn(0x20))});
  expect_psns(1, 0x21);
  s.wire_delivers(send_only(psn(0x20))).expect({ack(psn(0x20)).with_msn(1)});
  expect_psns(1, 0x21);
  s.app_sets_state(QpState::kErr).expect({flushed(2)});
  expect_psns(1, 0x21);
}

// IBTA vol 1, 9.7.3.1: a READ uses as many PSNs as its response has packets.
TEST(QpAttributes, TheNextPsnIsBehindTheResponsesOfARead) {
  ScriptOptions options;
  options.connection = {.mtu = abi::Mtu::k1024, .sq_psn = 7};
  Script s(options);
  SendWr read;
  read.wr_id = 1;
  read.opcode = abi::WrOpcode::kRdmaRead;
  read.sges = {s.app().send_sge(3000)};
  read.remote_address = 0x1000;
  read.rkey = 0x77;
  s.at(0ms).app_posts(read);
  s.bench().log.clear();
  EXPECT_EQ(s.client().query_qp(s.qpn()).sq_psn, 10u);
}

TEST(QpAttributes, QueryReturnsTheNextPsnsOfUnreliableQps) {
  for (const abi::QpType type : {abi::QpType::kUc, abi::QpType::kUd}) {
    ScriptOptions options;
    options.connection.type = type;
    options.connection.sq_psn = 5;
    Script s(options);
    SendWr send{.wr_id = 1, .sges = {s.app().send_sge(8)}};
    if (type == abi::QpType::kUd) {
      send.ah = s.client().create_ah(s.app().pd, address_vector(s.peer_ip(), 0));
      send.remote_qpn = Script::kPeerQpn;
    }
    s.at(0ms).app_posts(send);
    s.bench().log.clear();
    EXPECT_EQ(s.client().query_qp(s.qpn()).sq_psn, 6u);
  }
}

TEST(QpAttributes, PsnsWork24BitsWide) {
  ScriptOptions options;
  options.connection.sq_psn = 0xff000010;
  options.connection.rq_psn = 0xee000020;
  Script s(options);
  s.at(0ms).app_posts_recv(1).app_posts_send(2).expect({send_only(psn(0x10))});
  s.wire_delivers(send_only(psn(0x20))).expect({received(1), ack(psn(0x20))});
  s.wire_delivers(ack(psn(0x10))).expect({completion(2)});
}

// ---- RESET ------------------------------------------------------------------------------------

// IBTA vol 1, 10.3.1.1: a QP that returns to RESET is like a new one.
TEST(QpReset, ForgetsEverythingButTheCapabilities) {
  Script s;
  const QpAttr rts = s.client().query_qp(s.qpn());
  EXPECT_EQ(s.client().generation, 1u);
  s.app_sets_state(QpState::kReset);
  EXPECT_EQ(s.client().generation, 2u);
  const QpAttr attr = s.client().query_qp(s.qpn());
  QpAttr fresh{};
  fresh.cap = rts.cap;
  EXPECT_EQ(std::memcmp(&attr, &fresh, sizeof(attr)), 0);
  s.app_sets_state(QpState::kReset);
  EXPECT_EQ(s.client().generation, 3u);
}

TEST(QpReset, DropsPostedRequestsWithoutACompletion) {
  Script s;
  s.at(0ms).app_posts_recv(1).app_posts_send(2).expect({send_only(psn(0))});
  s.app_sets_state(QpState::kReset).expect_silence();
  EXPECT_EQ(s.bench().engine().next_deadline(), std::nullopt);
  s.at(10s).expect_silence();
}

// A completion contains the QP's generation, so that completions from before a reset can be
// distinguished from later ones.
TEST(QpReset, BeginsALifeWhoseCompletionsAreToldApart) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_recv(2).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0))).expect({completion(1).generation(1).wqe_count(1)});
  s.app_sets_state(QpState::kReset);
  s.app_connects(QpState::kRts);
  s.wire_delivers(ack(psn(0))).expect_silence();
  s.app_posts_send(3).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0))).expect({completion(3).generation(2).wqe_count(2)});
  s.app_posts_recv(4)
      .wire_delivers(send_only(psn(0)).with({7}))
      .expect({received(4).generation(2).wqe_count(2), ack(psn(0)).with_msn(1)});
}

TEST(QpReset, EndsAnRnrDelayAndAnErrorThatWaited) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.app_posts({.wr_id = 2, .sges = {{1, 1, 1}}}).expect_silence();
  s.wire_delivers(rnr_nak(psn(0), 14)).expect_silence();
  s.app_sets_state(QpState::kReset);
  s.app_connects(QpState::kRts);
  s.app_posts_send(3).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0))).expect({completion(3)});
  s.at(1s).expect_silence();
}

TEST(QpReset, LeavesTheErrorState) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  s.wire_delivers(nak(psn(0), wire::NakCode::kRemoteAccessError))
      .expect({failed(1, abi::WcStatus::kRemAccessErr).generation(1)});
  s.app_sets_state(QpState::kReset);
  s.app_connects(QpState::kRts);
  s.app_posts_send(2).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0))).expect({completion(2).generation(2)});
}

}  // namespace
}  // namespace rocemu::test
