// Tests errors on the sender's side, and their completions (IBTA vol 1, 9.9.2, 10.7.2, 10.8).
#include <gtest/gtest.h>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcStatus;
using abi::WrOpcode;
using engine::VendorError;

constexpr engine::Duration kTimeout = ack_timeout(14);

// ---- Signalling -------------------------------------------------------------------------------

// ibv_post_send(3), IBV_SEND_SIGNALED: only requests with this flag have a completion. The
// wqe_count of the completion also releases the WQEs of the unsignaled requests before it.
TEST(Requester, CompletesOnlySignaledSends) {
  Script s;
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = 0})
      .app_posts({.wr_id = 2, .flags = 0})
      .app_posts({.wr_id = 3, .flags = abi::kSendSignaled})
      .app_posts({.wr_id = 4, .flags = 0})
      .expect({send_only(psn(0)), send_only(psn(1)), send_only(psn(2)), send_only(psn(3))});
  s.at(1ms).wire_delivers(ack(psn(3))).expect({completion(3).wqe_count(3)});
}

// ibv_create_qp(3), sq_sig_all: "each Work Request (WR) submitted to the SQ generates a
// completion".
TEST(Requester, CompletesEverySendOfASqSigAllQp) {
  ScriptOptions options;
  options.sig_all = true;
  Script s(options);
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = 0})
      .app_posts({.wr_id = 2, .flags = 0})
      .expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms)
      .wire_delivers(ack(psn(1)))
      .expect({completion(1).wqe_count(1), completion(2).wqe_count(2)});
}

// IBTA vol 1, 10.7.3.1: a failed work request has a completion, signaled or not, and so does a
// flushed one.
TEST(Requester, CompletesAFailedSendThatWasNotSignaled) {
  ScriptOptions options;
  options.connection.retry_cnt = 0;
  Script s(options);
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = 0})
      .app_posts({.wr_id = 2, .flags = 0})
      .expect({send_only(psn(0)), send_only(psn(1))});
  s.at(kTimeout).expect({failed(1, WcStatus::kRetryExcErr).wqe_count(1), flushed(2).wqe_count(2)});
}

TEST(Requester, ReportsTheOpcodeOfASendWithImmediateAsSend) {
  Script s;
  s.at(0ms)
      .app_posts({.wr_id = 1, .opcode = WrOpcode::kSendWithImm, .imm = 5})
      .expect({send_only_imm(psn(0), 5)});
  // wc_flags describe the received message: a send completion has none.
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1).opcode(abi::WcOpcode::kSend)});
}

// ---- Local errors -----------------------------------------------------------------------------

struct BadSend {
  const char* name;
  WcStatus status;
  VendorError vendor;
  std::function<SendWr(Script&)> wr;
};

class LocalError : public testing::TestWithParam<BadSend> {};

// IBTA vol 1, 10.8.1 ("WRs complete in order") and 9.9.2.3: the requests before the bad request
// complete normally, the bad request completes with its status, and the requests after it are
// flushed.
TEST_P(LocalError, CompletesInOrderBehindTheSendsBeforeIt) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  SendWr wr = GetParam().wr(s);
  wr.wr_id = 2;
  wr.flags &= ~uint32_t{abi::kSendSignaled};
  s.app_posts(wr).expect_silence();
  s.app_posts_send(3).expect_silence().expect_state(QpState::kRts);
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1), failed(2, GetParam().status).vendor(GetParam().vendor).wqe_count(2),
               flushed(3).wqe_count(3)})
      .expect_state(QpState::kErr);
}

TEST_P(LocalError, CompletesAtOnceWhenNothingIsBeforeIt) {
  Script s;
  SendWr wr = GetParam().wr(s);
  wr.wr_id = 2;
  s.at(0ms).app_posts_recv(9);
  s.app_posts(wr).expect({failed(2, GetParam().status).vendor(GetParam().vendor), flushed(9)});
  s.expect_state(QpState::kErr);
}

// The request before the bad one is lost and repeated: the error is reported after that request is
// complete.
TEST_P(LocalError, WaitsForTheRetransmissionOfTheSendsBeforeIt) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  SendWr wr = GetParam().wr(s);
  wr.wr_id = 2;
  s.app_posts(wr).expect_silence();
  s.at(kTimeout).expect({send_only(psn(0))});
  s.at(kTimeout + 1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1), failed(2, GetParam().status).vendor(GetParam().vendor)});
}

INSTANTIATE_TEST_SUITE_P(
    Of, LocalError,
    testing::Values(
        BadSend{"AnUnknownKey", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  abi::Sge sge = s.app().send_sge(8);
                  sge.lkey ^= 0x5500;
                  return SendWr{.sges = {sge}};
                }},
        BadSend{"AKeyWithAnotherTag", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  abi::Sge sge = s.app().send_sge(8);
                  sge.lkey ^= 1;
                  return SendWr{.sges = {sge}};
                }},
        BadSend{"TheRemoteKeyInstead", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  abi::Sge sge = s.app().send_sge(8);
                  sge.lkey = s.app().send_mr.rkey;
                  return SendWr{.sges = {sge}};
                }},
        BadSend{"ARangeBehindTheRegion", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) { return SendWr{.sges = {s.app().send_sge(8, (1 << 16) - 7)}}; }},
        BadSend{"ARangeBeforeTheRegion", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  abi::Sge sge = s.app().send_sge(8);
                  --sge.address;
                  return SendWr{.sges = {sge}};
                }},
        BadSend{"ARangeThatWraps", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  abi::Sge sge = s.app().send_sge(8);
                  sge.address = ~uint64_t{0} - 3;
                  return SendWr{.sges = {sge}};
                }},
        BadSend{"ARegionOfAnotherPd", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  const uint32_t pd = s.client().alloc_pd();
                  const Mr mr = s.client().reg_mr(pd, Endpoint::kSendBuffer, 64);
                  return SendWr{.sges = {{Endpoint::kSendBuffer, 8, mr.lkey}}};
                }},
        BadSend{"ADeregisteredRegion", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  const Mr mr = s.client().reg_mr(s.app().pd, Endpoint::kSendBuffer, 64);
                  EXPECT_EQ(s.client().dereg_mr(mr.handle), 0);
                  return SendWr{.sges = {{Endpoint::kSendBuffer, 8, mr.lkey}}};
                }},
        BadSend{"UnmappedMemory", WcStatus::kLocProtErr, VendorError::kSendMemoryUnreadable,
                [](Script& s) {
                  s.bench().memory.map(s.client().id(), 0x7000, 64);
                  const Mr mr = s.client().reg_mr(s.app().pd, 0x7000, 64);
                  s.bench().memory.unmap(s.client().id(), 0x7000);
                  return SendWr{.sges = {{0x7000, 8, mr.lkey}}};
                }},
        BadSend{"ABadSecondEntry", WcStatus::kLocProtErr, VendorError::kBadSendLKey,
                [](Script& s) {
                  return SendWr{.sges = {s.app().send_sge(8), {Endpoint::kSendBuffer, 8, 77}}};
                }},
        // IBTA vol 1, 9.7.1: a message may have 2^31 bytes, so only the wrong key is an error.
        BadSend{"TwoToThe31BytesWithAKeyOfNothing", WcStatus::kLocProtErr,
                VendorError::kBadSendLKey,
                [](Script& s) {
                  const abi::Sge half = {Endpoint::kSendBuffer, 1u << 30,
                                         s.app().send_mr.lkey ^ 0x5500};
                  return SendWr{.sges = {half, half}};
                }},
        BadSend{"MoreThanTwoToThe31Bytes", WcStatus::kLocLenErr, VendorError::kMessageTooLong,
                [](Script& s) {
                  const abi::Sge half = {Endpoint::kSendBuffer, 1u << 30, s.app().send_mr.lkey};
                  const abi::Sge one = {Endpoint::kSendBuffer, 1, s.app().send_mr.lkey};
                  return SendWr{.sges = {half, half, one}};
                }},
        BadSend{"MoreThanTwoToThe32Bytes", WcStatus::kLocLenErr, VendorError::kMessageTooLong,
                [](Script& s) {
                  const abi::Sge all = {Endpoint::kSendBuffer, ~0u, s.app().send_mr.lkey};
                  return SendWr{.sges = {all, all, all, all}};
                }},
        BadSend{"MoreEntriesThanTheQpHas", WcStatus::kLocQpOpErr, VendorError::kBadWqe,
                [](Script&) { return SendWr{.sges = std::vector<abi::Sge>(5)}; }},
        BadSend{"MoreEntriesThanAnyQpHas", WcStatus::kLocQpOpErr, VendorError::kBadWqe,
                [](Script&) { return SendWr{.sges = std::vector<abi::Sge>(1 << 16)}; }},
        BadSend{"MoreInlineDataThanTheQpHas", WcStatus::kLocQpOpErr, VendorError::kBadWqe,
                [](Script&) {
                  return SendWr{.flags = abi::kSendSignaled | abi::kSendInline,
                                .inline_data = std::vector<uint8_t>(129)};
                }},
        BadSend{"ATsoSend", WcStatus::kLocQpOpErr, VendorError::kOpcodeNotSupported,
                [](Script&) { return SendWr{.opcode = WrOpcode::kTso}; }},
        BadSend{"AnAtomicOfAnotherSizeThanEight", WcStatus::kLocLenErr, VendorError::kBadWqe,
                [](Script& s) {
                  return SendWr{.opcode = WrOpcode::kAtomicFetchAndAdd,
                                .sges = {s.app().recv_sge(4)}};
                }},
        BadSend{"AnOpcodeThatDoesNotExist", WcStatus::kLocQpOpErr, VendorError::kOpcodeNotSupported,
                [](Script&) { return SendWr{.opcode = static_cast<WrOpcode>(0xdeadbeef)}; }}),
    [](const testing::TestParamInfo<BadSend>& one) { return one.param.name; });

TEST(Requester, SendsInlineDataAndEntriesUpToTheQpsLimits) {
  Script s;
  s.at(0ms)
      .app_posts(
          {.wr_id = 1, .flags = abi::kSendSignaled | abi::kSendInline, .inline_data = pattern(128)})
      .app_posts({.wr_id = 2, .sges = std::vector<abi::Sge>(4, s.app().send_sge(1))})
      .expect({send_only(psn(0)).with(pattern(128)), send_only(psn(1)).of_length(4)});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({completion(1), completion(2)});
}

// The region ends within the message: the first packets may be sent before the error is found.
TEST(Requester, FailsAMessageWhoseMemoryEndsOnTheWay) {
  ScriptOptions options;
  options.connection.mtu = abi::Mtu::k256;
  Script s(options);
  const Mr mr = s.client().reg_mr(s.app().pd, Endpoint::kSendBuffer, 256 * 20);
  s.at(0ms).app_posts({.wr_id = 1, .sges = {{Endpoint::kSendBuffer, 256 * 20 + 1, mr.lkey}}});
  ASSERT_FALSE(s.bench().log.empty());
  EXPECT_EQ(std::get<engine::Completion>(s.bench().log.back().output).cqe.status,
            static_cast<uint32_t>(WcStatus::kLocProtErr));
  s.expect_state(QpState::kErr);
  s.bench().log.clear();
}

TEST(Requester, FailsASendWhoseMemoryWentAwayBeforeTheRetransmission) {
  Script s;
  s.at(0ms).app_posts_send(1).app_posts_send(2).expect({send_only(psn(0)), send_only(psn(1))});
  s.bench().memory.unmap(s.client().id(), Endpoint::kSendBuffer);
  s.at(kTimeout).expect(
      {failed(1, WcStatus::kLocProtErr).vendor(VendorError::kSendMemoryUnreadable), flushed(2)});
}

TEST(Requester, CompletesASendThatIsAcknowledgedAfterItsMemoryWentAway) {
  Script s;
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0))});
  EXPECT_EQ(s.client().dereg_mr(s.app().send_mr.handle), 0);
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// ---- The error state --------------------------------------------------------------------------

// IBTA vol 1, 10.3.1.5: requests that are posted in the error state are flushed.
TEST(Requester, FlushesRequestsPostedInTheErrorState) {
  ScriptOptions options;
  options.state = QpState::kErr;
  Script s(options);
  s.at(0ms).app_posts({.wr_id = 1, .flags = 0}).expect({flushed(1).wqe_count(1)});
  s.app_posts_recv(2).expect({flushed(2).wqe_count(1)});
  s.app_posts_send(3).expect({flushed(3).wqe_count(2)});
}

TEST(Requester, FlushesInOrderWhenTheApplicationSetsTheErrorState) {
  Script s;
  s.at(0ms).app_posts_recv(8).app_posts_recv(9).app_posts_send(1).app_posts_send(2).expect(
      {send_only(psn(0)), send_only(psn(1))});
  s.app_sets_state(QpState::kErr).expect({flushed(1), flushed(2), flushed(8), flushed(9)});
  s.wire_delivers(ack(psn(1))).expect_silence();
  s.app_sets_state(QpState::kErr).expect_silence();
  s.at(10s).expect_silence();
}

// ---- Posts in states that do not send ---------------------------------------------------------

// ibv_post_send(3) refuses requests in these states. If a doorbell arrives nevertheless, its
// requests only take up slots of the queue.
TEST(Requester, IgnoresPostsBeforeRts) {
  for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr}) {
    ScriptOptions options;
    options.state = state;
    Script s(options);
    s.at(0ms).app_posts_send(1).expect_silence();
    s.at(1s).expect_silence();
  }
}

TEST(Requester, SendsNormallyAfterAPostThatCameTooEarly) {
  ScriptOptions options;
  options.state = QpState::kReset;
  Script s(options);
  s.at(0ms).app_posts_send(1).app_posts_recv(2).expect_silence();
  s.app_connects(QpState::kRts);
  s.app_posts_send(3).expect({send_only(psn(0))});
  // The ignored WQE took up a slot of the ring: the next WQE is the second.
  s.wire_delivers(ack(psn(0))).expect({completion(3).wqe_count(2)});
}

}  // namespace
}  // namespace rocemu::test
