// Tests requests that the responder refuses permanently (IBTA vol 1, 9.7.4.1: the checks in order;
// 9.9.3: table "Responder error behavior").
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::EventType;
using abi::Mtu;
using abi::QpState;
using abi::WcStatus;
using engine::Counter;
using engine::VendorError;
using wire::NakCode;
using wire::Opcode;

constexpr auto kInvalidRequest = NakCode::kInvalidRequest;

ScriptOptions small_mtu() {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  return options;
}

const Expected kReqErr = event(EventType::kQpReqErr, Endpoint::kQpHandle);

// ---- Opcode sequence --------------------------------------------------------------------------

// IBTA vol 1, 9.7.4.1.2, table "Summary: responder opcode sequence": between messages only First
// and Only are allowed, and within a message only Middle and Last.
TEST(ResponderErrors, RefusesMiddleAndLastWithoutAMessage) {
  for (const Opcode opcode : {Opcode::kRcSendMiddle, Opcode::kRcSendLast, Opcode::kRcSendLastImm}) {
    Script s(small_mtu());
    s.at(0ms).app_posts_recv(1).app_posts_send(2).expect({send_only(psn(0))});
    // No receive WQE was taken that could complete with the error, so the application gets an
    // event, and all requests are flushed.
    s.wire_delivers(packet(opcode, psn(0)).of_length(256))
        .expect({nak(psn(0), kInvalidRequest).with_msn(0), kReqErr, flushed(2), flushed(1)})
        .expect_state(QpState::kErr)
        .expect_counter(Counter::kErrorNaksSent, 1);
  }
}

TEST(ResponderErrors, RefusesFirstAndOnlyWithinAMessage) {
  for (const Opcode opcode :
       {Opcode::kRcSendFirst, Opcode::kRcSendOnly, Opcode::kRcSendOnlyImm, Opcode::kRcWriteOnly,
        Opcode::kRcReadRequest, Opcode::kRcFetchAdd, Opcode::kRcCompareSwap}) {
    Script s(small_mtu());
    s.at(0ms).app_posts_recv(1).app_posts_recv(2);
    s.wire_delivers(send_first(psn(0)).of_length(256)).expect_silence();
    const uint32_t length = wire::find_opcode(opcode)->has_payload ? 256 : 0;
    s.wire_delivers(packet(opcode, psn(1)).of_length(length))
        .expect({nak(psn(1), kInvalidRequest),
                 failed(1, WcStatus::kLocQpOpErr).vendor(VendorError::kInvalidRequest), flushed(2)})
        .expect_state(QpState::kErr);
  }
}

// Operations that the QP does not allow its peer are invalid requests, too (9.7.4.1.3).
TEST(ResponderErrors, RefusesOperationsThatTheQpDoesNotAllow) {
  for (const Opcode opcode : {Opcode::kRcFlush, Opcode::kRcAtomicWrite}) {
    Script s;
    s.at(0ms).app_posts_recv(1);
    const uint32_t length = opcode == Opcode::kRcAtomicWrite ? 8 : 0;
    s.wire_delivers(packet(opcode, psn(0)).of_length(length))
        .expect({nak(psn(0), kInvalidRequest), kReqErr, flushed(1)});
  }
}

// ---- Lengths ----------------------------------------------------------------------------------

struct BadLength {
  const char* name;
  bool in_message;
  Opcode opcode;
  uint32_t length;
};

class ResponderLength : public testing::TestWithParam<BadLength> {};

// IBTA vol 1, 9.7.4.1.6: First and Middle have exactly the path MTU, Last has from 1 byte to the
// path MTU, Only from 0 bytes to the path MTU.
TEST_P(ResponderLength, IsAnInvalidRequest) {
  const BadLength& bad = GetParam();
  Script s(small_mtu());
  s.at(0ms).app_posts_recv(1);
  uint32_t next = 0;
  if (bad.in_message) s.wire_delivers(send_first(psn(next++)).of_length(256)).expect_silence();
  s.wire_delivers(packet(bad.opcode, psn(next)).of_length(bad.length));
  std::vector<Expected> expected = {nak(psn(next), kInvalidRequest)};
  if (bad.in_message) {
    expected.push_back(failed(1, WcStatus::kLocQpOpErr));
  } else {
    expected.insert(expected.end(), {kReqErr, flushed(1)});
  }
  s.expect_list(expected).expect_state(QpState::kErr);
}

INSTANTIATE_TEST_SUITE_P(
    Of, ResponderLength,
    testing::Values(BadLength{"AShortFirst", false, Opcode::kRcSendFirst, 255},
                    BadLength{"AnEmptyFirst", false, Opcode::kRcSendFirst, 0},
                    BadLength{"ALongFirst", false, Opcode::kRcSendFirst, 257},
                    BadLength{"ALongOnly", false, Opcode::kRcSendOnly, 257},
                    BadLength{"ALongOnlyWithImmediate", false, Opcode::kRcSendOnlyImm, 260},
                    BadLength{"AShortMiddle", true, Opcode::kRcSendMiddle, 252},
                    BadLength{"ALongMiddle", true, Opcode::kRcSendMiddle, 512},
                    BadLength{"AnEmptyLast", true, Opcode::kRcSendLast, 0},
                    BadLength{"ALongLast", true, Opcode::kRcSendLast, 257},
                    BadLength{"AnEmptyLastWithImmediate", true, Opcode::kRcSendLastImm, 0}),
    [](const testing::TestParamInfo<BadLength>& one) { return one.param.name; });

// ---- Receive WQEs -----------------------------------------------------------------------------

// IBTA vol 1, 9.7.5.2.4: a message that is longer than the receive buffer is an invalid request.
// ibv_poll_cq(3): the receive completes with IBV_WC_LOC_LEN_ERR. (Linux rxe answers with the
// syndrome 0x63.)
TEST(ResponderErrors, RefusesAMessageLongerThanTheReceive) {
  Script s;
  s.at(0ms).app_posts_recv(1, 7).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0)).with(std::vector<uint8_t>(8, 1)))
      .expect({nak(psn(0), kInvalidRequest).with_msn(0),
               failed(1, WcStatus::kLocLenErr).vendor(VendorError::kReceiveTooSmall).wqe_count(1),
               flushed(2).wqe_count(2)})
      .expect_state(QpState::kErr)
      .expect_received(std::vector<uint8_t>(8, 0));
}

TEST(ResponderErrors, FindsAReceiveTooSmallOnTheWay) {
  Script s(small_mtu());
  s.at(0ms).app_posts_recv(1, 300);
  s.wire_delivers(send_first(psn(0)).of_length(256)).expect_silence();
  s.wire_delivers(send_last(psn(1)).of_length(45))
      .expect({nak(psn(1), kInvalidRequest), failed(1, WcStatus::kLocLenErr)});
}

TEST(ResponderErrors, TakesAMessageThatJustFits) {
  Script s(small_mtu());
  s.at(0ms).app_posts_recv(1, 300);
  s.wire_delivers(send_first(psn(0)).of_length(256)).expect_silence();
  s.wire_delivers(send_last(psn(1)).of_length(44)).expect({received(1).bytes(300), ack(psn(1))});
}

struct BadReceive {
  const char* name;
  WcStatus status;
  VendorError vendor;
  std::function<RecvWr(Script&)> wr;
};

class BadReceiveWqe : public testing::TestWithParam<BadReceive> {};

// IBTA vol 1, 9.7.5.2.6: an error in the responder's own WQE is a remote operational error.
TEST_P(BadReceiveWqe, IsARemoteOperationalError) {
  Script s;
  RecvWr wr = GetParam().wr(s);
  wr.wr_id = 1;
  s.at(0ms).app_posts_recv_list(wr).app_posts_recv(2).app_posts_send(3).expect({send_only(psn(0))});
  s.wire_delivers(send_only(psn(0)).of_length(8))
      .expect({nak(psn(0), NakCode::kRemoteOperationalError),
               failed(1, GetParam().status).vendor(GetParam().vendor), flushed(3), flushed(2)})
      .expect_state(QpState::kErr);
}

INSTANTIATE_TEST_SUITE_P(
    With, BadReceiveWqe,
    testing::Values(
        BadReceive{"AnUnknownKey", WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
                   [](Script&) {
                     return RecvWr{.sges = {{Endpoint::kRecvBuffer, 8, 12345}}};
                   }},
        BadReceive{"ARangeBehindTheRegion", WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
                   [](Script& s) { return RecvWr{.sges = {s.app().recv_sge(8, (1 << 16) - 7)}}; }},
        // ibv_reg_mr(3): without IBV_ACCESS_LOCAL_WRITE, the NIC may not write to the region.
        BadReceive{"NoLocalWrite", WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
                   [](Script& s) { return RecvWr{.sges = {s.app().send_sge(8)}}; }},
        BadReceive{"ARegionOfAnotherPd", WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
                   [](Script& s) {
                     const uint32_t pd = s.client().alloc_pd();
                     const Mr mr = s.client().reg_mr(pd, Endpoint::kRecvBuffer, 64);
                     return RecvWr{.sges = {{Endpoint::kRecvBuffer, 8, mr.lkey}}};
                   }},
        BadReceive{"ADeregisteredRegion", WcStatus::kLocProtErr, VendorError::kBadReceiveLKey,
                   [](Script& s) {
                     const Mr mr = s.client().reg_mr(s.app().pd, Endpoint::kRecvBuffer, 64);
                     EXPECT_EQ(s.client().dereg_mr(mr.handle), 0);
                     return RecvWr{.sges = {{Endpoint::kRecvBuffer, 8, mr.lkey}}};
                   }},
        BadReceive{"UnwritableMemory", WcStatus::kLocProtErr, VendorError::kReceiveMemoryUnwritable,
                   [](Script& s) {
                     s.bench().memory.protect(s.client().id(), Endpoint::kRecvBuffer, true, false);
                     return RecvWr{.sges = {s.app().recv_sge(8)}};
                   }},
        BadReceive{"UnmappedMemory", WcStatus::kLocProtErr, VendorError::kReceiveMemoryUnwritable,
                   [](Script& s) {
                     s.bench().memory.unmap(s.client().id(), Endpoint::kRecvBuffer);
                     return RecvWr{.sges = {s.app().recv_sge(8)}};
                   }},
        BadReceive{"MoreEntriesThanTheQpHas", WcStatus::kLocQpOpErr, VendorError::kBadWqe,
                   [](Script&) { return RecvWr{.sges = std::vector<abi::Sge>(5)}; }},
        BadReceive{"MoreEntriesThanAnyQpHas", WcStatus::kLocQpOpErr, VendorError::kBadWqe,
                   [](Script&) { return RecvWr{.sges = std::vector<abi::Sge>(1 << 16)}; }}),
    [](const testing::TestParamInfo<BadReceive>& one) { return one.param.name; });

// If the receiving process died, its NIC behaves toward the peer like a NIC that has failed: it
// sends neither an ACK nor a NAK. It also reports no completion.
TEST(ResponderErrors, IsSilentWhenTheProcessIsGone) {
  Script s;
  s.at(0ms).app_posts_recv(1);
  s.bench().memory.gone.insert(s.client().id());
  s.wire_delivers(send_only(psn(0)).of_length(8)).expect_silence().expect_state(QpState::kRts);
  s.wire_delivers(send_only(psn(0)).of_length(8)).expect_silence();
}

// ---- The order of the checks ------------------------------------------------------------------

// The PSN is checked first: if a packet has a wrong PSN and another error, only the PSN is
// reported.
TEST(ResponderErrors, ChecksThePsnFirst) {
  Script s;
  s.at(0ms);
  s.wire_delivers(send_middle(psn(5)).of_length(3)).expect({sequence_nak(psn(0))});
  s.wire_delivers(send_middle(psn(0xfffff0)).of_length(3)).expect({ack(psn(0xffffff))});
  s.expect_state(QpState::kRts);
}

// Opcode and length are checked before resources: a bad request is refused even if no receive is
// posted.
TEST(ResponderErrors, ChecksTheRequestBeforeItLooksForAReceive) {
  {
    Script s;
    s.at(0ms)
        .wire_delivers(send_last(psn(0)).of_length(3))
        .expect({nak(psn(0), kInvalidRequest), kReqErr});
  }
  {
    Script s;
    s.at(0ms)
        .wire_delivers(send_first(psn(0)).of_length(3))
        .expect({nak(psn(0), kInvalidRequest), kReqErr});
  }
}

// The receive is too small for the message and also has a bad key: the size is checked first.
TEST(ResponderErrors, ChecksTheReceivesLengthBeforeItsKeys) {
  Script s;
  s.at(0ms).app_posts_recv_list({.wr_id = 1, .sges = {{Endpoint::kRecvBuffer, 7, 999}}});
  s.wire_delivers(send_only(psn(0)).of_length(8))
      .expect({nak(psn(0), kInvalidRequest), failed(1, WcStatus::kLocLenErr)});
}

// IBTA vol 1, 10.7.2.2: the keys of SGEs to which nothing is written are not checked.
TEST(ResponderErrors, IgnoresEntriesThatTheMessageDoesNotReach) {
  Script s;
  s.at(0ms).app_posts_recv_list(
      {.wr_id = 1, .sges = {s.app().recv_sge(8), {Endpoint::kRecvBuffer, 8, 999}}});
  s.wire_delivers(send_only(psn(0)).of_length(8)).expect({received(1).bytes(8), ack(psn(0))});
}

TEST(ResponderErrors, AnswersNothingAfterItFailed) {
  Script s;
  s.at(0ms)
      .wire_delivers(send_last(psn(0)).of_length(3))
      .expect({nak(psn(0), kInvalidRequest), kReqErr});
  s.wire_delivers(send_only(psn(0))).wire_delivers(send_only(psn(1))).expect_silence();
  s.wire_delivers(send_last(psn(0)).of_length(3)).expect_silence();
}

}  // namespace
}  // namespace rocemu::test
