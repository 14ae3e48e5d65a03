// Tests which values two nodes may read from each other with `--adversarial`. They are litmus tests
// in the style of coreRMA ("Modeling and analysis of remote memory access programming", OOPSLA
// 2016) and of RDMA^TSO ("Semantics of remote direct memory access", OOPSLA 2024). The outcomes
// come from these models, the specification and the man pages.
//
// ROCEMU_LITMUS_SEEDS=10000 runs each test with that number of seeds instead of 1000.
#include "tests/engine/adversarial/litmus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>

namespace rocemu::test::litmus {

void PrintTo(const LitmusTest& test, std::ostream* os) {
  *os << test.name;
}

namespace {

using abi::WrOpcode;

/// The number of seeds within which each allowed outcome must occur at least once.
constexpr uint64_t kSeedsForAllowed = 400;

uint64_t seeds() {
  const char* text = std::getenv("ROCEMU_LITMUS_SEEDS");
  const uint64_t wanted = text == nullptr ? 1000 : std::strtoull(text, nullptr, 10);
  return std::max(kSeedsForAllowed, wanted);
}

// Words of each node. Two neighbors are for a message of two words.
constexpr uint32_t X = 0, Y = 1, Z = 2;   // words that the peer writes and reads
constexpr uint32_t S = 8, T = 9;          // the data that is sent
constexpr uint32_t R = 16, Q = 17;        // results
constexpr uint32_t M = World::kReceived;  // the word where a SEND arrives

Op store(uint32_t word, uint64_t value) {
  return {.kind = Op::Kind::kStore, .word = word, .value = value};
}
Op increment(uint32_t word, uint64_t by) {
  return {.kind = Op::Kind::kIncrement, .word = word, .value = by};
}
Op load(uint32_t word) {
  return {.kind = Op::Kind::kLoad, .word = word};
}
Op await(uint32_t word, uint64_t value) {
  return {.kind = Op::Kind::kAwait, .word = word, .value = value};
}
Op poll(uint64_t count, uint32_t qp = 0) {
  return {.kind = Op::Kind::kPoll, .value = count, .qp = qp};
}
Op take(uint32_t qp = 0) {
  return {.kind = Op::Kind::kTake, .value = 1, .qp = qp};
}
Op count() {
  return {.kind = Op::Kind::kCount};
}
Op tell() {
  return {.kind = Op::Kind::kTell};
}
Op hear() {
  return {.kind = Op::Kind::kHear};
}
Op post(WrOpcode opcode, uint32_t word, uint32_t from, uint32_t words, uint32_t qp) {
  return {.kind = Op::Kind::kPost,
          .word = word,
          .qp = qp,
          .opcode = opcode,
          .from = from,
          .words = words};
}
Op write(uint32_t to, uint32_t from, uint32_t words = 1, uint32_t qp = 0) {
  return post(WrOpcode::kRdmaWrite, to, from, words, qp);
}
Op write_imm(uint32_t to, uint32_t from) {
  return post(WrOpcode::kRdmaWriteWithImm, to, from, 1, 0);
}
Op send(uint32_t from, uint32_t qp = 0) {
  return post(WrOpcode::kSend, 0, from, 1, qp);
}
Op read(uint32_t into, uint32_t of, uint32_t words = 1, uint32_t qp = 0) {
  return post(WrOpcode::kRdmaRead, of, into, words, qp);
}
Op fetch_add(uint32_t into, uint32_t to, uint32_t qp = 0) {
  Op op = post(WrOpcode::kAtomicFetchAndAdd, to, into, 1, qp);
  op.value = 1;
  return op;
}
Op with(uint32_t flags, Op op) {
  op.flags = flags;
  return op;
}

const LitmusTest kTests[] = {
    // ---- One message ----
    {.name = "WordsOfAWriteHaveNoOrder",
     .clause = "IBTA vol 1, 9.5, o9-20",
     .threads = {{'A', {store(S, 1), store(T, 1), write(X, S, 2)}}, {'B', {load(Y), load(X)}}},
     .allowed = {"00", "01", "10", "11"}},
    {.name = "LoadsBesideAWriteMayBeStaleButNeverGoBack",
     .clause = "coreRMA and RDMA^TSO: coherence of one location",
     .threads = {{'A', {store(S, 1), write(X, S)}}, {'B', {load(X), load(X)}}},
     .allowed = {"00", "01", "11"},
     .forbidden = {"10"}},
    {.name = "AReceiveBufferIsWholeWithItsCompletion",
     .clause = "IBTA vol 1, 9.5: the buffer of a receive may be relied on when it has completed",
     .threads = {{'A', {store(S, 1), send(S)}}, {'B', {load(M), take(), load(M)}}},
     .allowed = {"01", "11"},
     .forbidden = {"00", "10"}},
    {.name = "TheBufferOfAReadIsWholeWithItsCompletion",
     .clause = "IBTA vol 1, 9.5: the buffer of a READ may be relied on when it has completed",
     .threads = {{'B', {store(X, 1), tell()}},
                 {'A', {hear(), read(R, X), load(R), poll(1), load(R)}}},
     .allowed = {"01", "11"},
     .forbidden = {"00", "10"}},
    {.name = "WordsOfTheAnswerToAReadHaveNoOrder",
     .clause = "IBTA vol 1, 9.5; ibv_query_qp_data_in_order(3)",
     .threads = {{'B', {store(X, 1), store(Y, 1), tell()}},
                 {'A', {hear(), read(R, X, 2), load(Q), load(R)}}},
     .allowed = {"00", "01", "10", "11"}},
    {.name = "WordsAreReadInAnyOrderBesideStores",
     .clause = "IBTA vol 1, 9.5; coreRMA: a get of several words is not atomic",
     .threads = {{'B', {store(X, 1), store(Y, 1)}},
                 {'A', {read(R, X, 2), poll(1), load(R), load(Q)}}},
     .allowed = {"00", "01", "10", "11"}},

    // ---- When a message is read ----
    {.name = "AStoreBeforeTheCompletionMayBeSent",
     .clause =
         "ibv_post_send(3); RDMA^TSO: the local read of a put is not ordered with later stores",
     .threads = {{'A', {store(S, 1), write(X, S), store(S, 2), poll(1)}}},
     .ends = {{'B', X}},
     .allowed = {"1", "2"},
     .forbidden = {"0"}},
    {.name = "AStoreAfterTheCompletionIsNotSent",
     .clause = "ibv_post_send(3); RDMA^TSO: poll orders the local read of a put with what follows",
     .threads = {{'A', {store(S, 1), write(X, S), poll(1), store(S, 2)}}},
     .ends = {{'B', X}},
     .allowed = {"1"},
     .forbidden = {"0", "2"}},
    {.name = "InlineDataIsReadByThePost",
     .clause = "ibv_post_send(3), IBV_SEND_INLINE",
     .threads = {{'A', {store(S, 1), with(abi::kSendInline, write(X, S)), store(S, 2)}}},
     .ends = {{'B', X}},
     .allowed = {"1"},
     .forbidden = {"0", "2"}},

    // ---- Two WRITEs ----

    // RDMA^TSO also forbids the outcome 0. rocemu never produces it either, because ibv_reg_mr(3)
    // promises the order and programs rely on it.
    {.name = "WritesOfOneQpToOrdinaryMemory",
     .clause = "allowed by IBTA vol 1, 9.5; ibv_reg_mr(3): write-after-write message order",
     .threads = {{'A', {store(S, 1), write(X, S), write(Y, S)}}, {'B', {await(Y, 1), load(X)}}},
     .allowed = {"1"},
     .never_shown = {"0"}},
    {.name = "WritesOfOneQpToRelaxedMemory",
     .clause = "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING",
     .threads = {{'A', {store(S, 1), write(X, S), write(Y, S)}}, {'B', {await(Y, 1), load(X)}}},
     .allowed = {"0", "1"},
     .access = abi::kAccessRelaxedOrdering},
    {.name = "WritesOfOneQpToOneWord",
     .clause = "IBTA vol 1, 10.8.3.3: WRITE after WRITE is in order; coherence",
     .threads = {{'A', {store(S, 1), store(T, 2), write(X, S), write(X, T)}}},
     .ends = {{'B', X}},
     .allowed = {"2"},
     .forbidden = {"0", "1"}},
    // docs/adversarial.md, relaxed: WRITEs to the same bytes keep their order.
    {.name = "WritesOfOneQpToOneRelaxedWord",
     .clause = "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING",
     .threads = {{'A', {store(S, 1), store(T, 2), write(X, S), write(X, T)}}},
     .ends = {{'B', X}},
     .allowed = {"2"},
     .never_shown = {"1"},
     .forbidden = {"0"},
     .access = abi::kAccessRelaxedOrdering},
    {.name = "WritesOfTwoQps",
     .clause = "RDMA^TSO: two QPs have no order; IBTA vol 1, 9.5",
     .threads = {{'A', {store(S, 1), write(X, S), write(Y, S, 1, 1)}},
                 {'B', {await(Y, 1), load(X)}}},
     .allowed = {"0", "1"}},
    {.name = "WritesOfTwoQpsWithACompletionBetween",
     .clause = "RDMA^TSO: poll does not wait for the remote write of a put; IBTA vol 1, 9.5",
     .threads = {{'A', {store(S, 1), write(X, S), poll(1), write(Y, S, 1, 1)}},
                 {'B', {await(Y, 1), load(X)}}},
     .allowed = {"0", "1"}},
    {.name = "WritesOfTwoQpsToOneWord",
     .clause = "RDMA^TSO: two QPs have no order",
     .threads = {{'A', {store(S, 1), store(T, 2), write(X, S), write(X, T, 1, 1)}}},
     .ends = {{'B', X}},
     .allowed = {"1", "2"},
     .forbidden = {"0"}},

    // ---- How a program learns that a WRITE has arrived ----
    {.name = "WriteThenSend",
     .clause = "IBTA vol 1, 9.5: completion of a subsequent SEND",
     .threads = {{'A', {store(S, 1), store(T, 1), write(X, S, 2), send(S)}},
                 {'B', {take(), load(X), load(Y)}}},
     .allowed = {"11"},
     .forbidden = {"00", "01", "10"}},
    {.name = "RelaxedWriteThenSend",
     .clause = "ibv_reg_mr(3): relaxed ordering keeps the order of completions",
     .threads = {{'A', {store(S, 1), write(X, S), send(S)}}, {'B', {take(), load(X)}}},
     .allowed = {"1"},
     .forbidden = {"0"},
     .access = abi::kAccessRelaxedOrdering},
    {.name = "WriteThenSendOnAnotherQp",
     .clause = "IBTA vol 1, 9.5 is about one QP; RDMA^TSO: two QPs have no order",
     .threads = {{'A', {store(S, 1), write(X, S), send(S, 1)}}, {'B', {take(1), load(X)}}},
     .allowed = {"0", "1"}},
    {.name = "WriteThenWriteWithImmediate",
     .clause = "IBTA vol 1, 9.5: completion of a WRITE with immediate data",
     .threads = {{'A', {store(S, 1), write(X, S), write_imm(Y, S)}},
                 {'B', {take(), load(X), load(Y)}}},
     .allowed = {"11"},
     .forbidden = {"00", "01", "10"}},
    {.name = "RelaxedWriteThenFetchAdd",
     .clause = "IBTA vol 1, 9.5: update by a subsequent atomic; ibv_reg_mr(3)",
     .threads = {{'A', {store(S, 1), write(X, S), fetch_add(R, Y)}}, {'B', {await(Y, 1), load(X)}}},
     .allowed = {"1"},
     .forbidden = {"0"},
     .access = abi::kAccessRelaxedOrdering},
    {.name = "WriteThenTheRequestersCompletion",
     .clause = "IBTA vol 1, 9.5; RDMA^TSO: poll does not wait for the remote write of a put",
     .threads = {{'A', {store(S, 1), write(X, S), poll(1), tell()}}, {'B', {hear(), load(X)}}},
     .allowed = {"0", "1"}},
    // IBTA vol 1, 9.5, does not list READ, but the model and PCIe order it after the WRITE.
    {.name = "WriteThenReadThenTheRequestersCompletion",
     .clause = "RDMA^TSO: a remote read of the same QP flushes the remote writes before it",
     .threads = {{'A', {store(S, 1), write(X, S), read(R, Z), poll(2), tell()}},
                 {'B', {hear(), load(X)}}},
     .allowed = {"1"},
     .forbidden = {"0"}},

    // ---- READs ----
    {.name = "ReadAfterWriteOfOneQp",
     .clause = "IBTA vol 1, 10.8.3.3: READ after WRITE is in order",
     .threads = {{'A', {store(S, 1), write(X, S), read(R, X), poll(2), load(R)}}},
     .allowed = {"1"},
     .forbidden = {"0"}},
    {.name = "ReadOnAnotherQp",
     .clause = "RDMA^TSO: two QPs have no order",
     .threads = {{'A', {store(S, 1), write(X, S), read(R, X, 1, 1), poll(1, 1), load(R)}}},
     .allowed = {"0", "1"}},
    // docs/adversarial.md, placement: the NIC sees the data that it has received on any QP.
    {.name = "ReadOnAnotherQpAfterTheCompletion",
     .clause = "RDMA^TSO: poll does not wait for the remote write of a put",
     .threads = {{'A', {store(S, 1), write(X, S), poll(1), read(R, X, 1, 1), poll(1, 1), load(R)}}},
     .allowed = {"1"},
     .never_shown = {"0"}},
    {.name = "MessagePassingByReads",
     .clause = "RDMA^TSO: poll orders a get with what follows",
     .threads = {{'B', {store(X, 1), store(Y, 1)}},
                 {'A', {read(R, Y), poll(1), read(Q, X), poll(2), load(R), load(Q)}}},
     .allowed = {"00", "01", "11"},
     .forbidden = {"10"}},
    {.name = "MessagePassingByReadsAtOnce",
     .clause = "IBTA vol 1, 10.8.3.3: READ after READ is in order",
     .threads = {{'B', {store(X, 1), store(Y, 1)}},
                 {'A', {read(R, Y), read(Q, X), poll(2), load(R), load(Q)}}},
     .allowed = {"00", "01", "11"},
     .forbidden = {"10"}},
    {.name = "WriteOfWhatAReadBrings",
     .clause = "IBTA vol 1, 10.8.3.3: WRITE after READ has no order without a fence",
     .threads = {{'B', {store(X, 1), tell()}}, {'A', {hear(), read(R, X), write(Y, R)}}},
     .ends = {{'B', Y}},
     .allowed = {"0", "1"}},
    {.name = "FencedWriteOfWhatAReadBrings",
     .clause = "IBTA vol 1, 10.8.3.3; ibv_post_send(3), IBV_SEND_FENCE; RDMA^TSO: remote fence",
     .threads = {{'B', {store(X, 1), tell()}},
                 {'A', {hear(), read(R, X), with(abi::kSendFence, write(Y, R))}}},
     .ends = {{'B', Y}},
     .allowed = {"1"},
     .forbidden = {"0"}},

    // ---- Atomics ----
    {.name = "FetchAddBesideAnIncrement",
     .clause = "ibv_query_device(3), IBV_ATOMIC_HCA; IBTA vol 1, 9.4.5",
     .threads = {{'B', {increment(X, 2)}}, {'A', {fetch_add(R, X), poll(1), load(R)}}},
     .ends = {{'B', X}},
     .allowed = {"01", "03", "23"},
     .forbidden = {"02", "21", "22"}},
    {.name = "FetchAddBesideFetchAdd",
     .clause = "IBTA vol 1, 9.4.5: atomics of one device are atomic among each other",
     .threads = {{'A', {fetch_add(R, X), poll(1), load(R)}},
                 {'A', {fetch_add(Q, X, 1), poll(1, 1), load(Q)}}},
     .ends = {{'B', X}},
     .allowed = {"012", "102"},
     .forbidden = {"001", "002", "011", "101", "111", "112"}},
    // docs/adversarial.md, atomicity: WRITEs see the result of an atomic.
    {.name = "FetchAddBesideAWrite",
     .clause = "IBTA vol 1, 9.4.5: atomics are not atomic toward WRITEs",
     .threads = {{'A', {fetch_add(R, X), poll(1), load(R)}},
                 {'A', {store(S, 5), write(X, S, 1, 1)}}},
     .ends = {{'B', X}},
     .allowed = {"05", "56"},
     .never_shown = {"01"},
     .forbidden = {"06", "51", "55"}},

    // ---- Two writers ----
    {.name = "StoreBuffering",
     .clause = "RDMA^TSO: poll does not wait for the remote write of a put",
     .threads = {{'A', {store(S, 1), write(X, S), poll(1), load(X)}},
                 {'B', {store(S, 1), write(X, S), poll(1), load(X)}}},
     .allowed = {"00", "01", "10", "11"}},
    {.name = "StoreBufferingWithReads",
     .clause = "RDMA^TSO: a remote read of the same QP flushes the remote writes before it",
     .threads = {{'A', {store(S, 1), write(X, S), read(R, Z), poll(2), load(X)}},
                 {'B', {store(S, 1), write(X, S), read(R, Z), poll(2), load(X)}}},
     .allowed = {"01", "10", "11"},
     .forbidden = {"00"}},
    {.name = "LoadBuffering",
     .clause = "RDMA^TSO: a load is ordered with later posts",
     .threads = {{'A', {store(S, 1), load(X), write(X, S)}},
                 {'B', {store(S, 1), load(X), write(X, S)}}},
     .allowed = {"00", "01", "10"},
     .forbidden = {"11"}},
    {.name = "LoadBufferingByARead",
     .clause = "IBTA vol 1, 10.8.3.3: WRITE after READ has no order without a fence",
     .threads = {{'A', {store(S, 1), read(R, X), write(Y, S), poll(2), load(R)}},
                 {'B', {await(Y, 1), store(X, 1)}}},
     .allowed = {"0", "1"}},
    {.name = "LoadBufferingByAReadAndAFence",
     .clause = "IBTA vol 1, 10.8.3.3; ibv_post_send(3), IBV_SEND_FENCE; RDMA^TSO: remote fence",
     .threads = {{'A',
                  {store(S, 1), read(R, X), with(abi::kSendFence, write(Y, S)), poll(2), load(R)}},
                 {'B', {await(Y, 1), store(X, 1)}}},
     .allowed = {"0"},
     .forbidden = {"1"}},
    {.name = "WriteToReadCausality",
     .clause = "RDMA^TSO and coreRMA: what a load has seen is in memory",
     .threads = {{'A', {store(S, 1), write(X, S)}},
                 {'B', {await(X, 1), store(S, 1), write(Y, S)}},
                 {'A', {await(Y, 1), read(R, X, 1, 1), poll(1, 1), load(R)}}},
     .allowed = {"1"},
     .forbidden = {"0"}},

    // ---- Completions ----
    {.name = "AReplyMayComeBeforeTheCompletionOfItsRequest",
     .clause = "IBTA vol 1, 9.7.5.1.2 and 10.8.5: two queues have no order",
     .threads = {{'A', {send(S), take(), count()}}, {'B', {take(), send(S)}}},
     .allowed = {"0", "1"}},
};

std::string verdict(const LitmusTest& test, const std::string& outcome) {
  const auto has = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, outcome) != list.end();
  };
  if (has(test.allowed)) return "";
  if (has(test.never_shown))
    return "is allowed, but docs/adversarial.md says that rocemu is kinder";
  return has(test.forbidden) ? "is forbidden" : "is in no list";
}

class AdversarialLitmus : public testing::TestWithParam<LitmusTest> {};

TEST_P(AdversarialLitmus, ShowsExactlyTheAllowedOutcomes) {
  const LitmusTest& test = GetParam();
  std::map<std::string, uint64_t> first;  // the first seed with each outcome
  for (uint64_t seed = 0; seed < seeds(); ++seed) {
    const std::string outcome = World(test, seed).run(test);
    if (!first.try_emplace(outcome, seed).second) continue;
    const std::string wrong = verdict(test, outcome);
    EXPECT_EQ(wrong, "") << "outcome " << outcome << ", seed " << seed << "; " << test.clause;
  }
  uint64_t needed = 0;
  for (const std::string& outcome : test.allowed) {
    const auto found = first.find(outcome);
    const uint64_t seed = found == first.end() ? seeds() : found->second;
    EXPECT_LT(seed, kSeedsForAllowed) << "outcome " << outcome << " is not seen; " << test.clause;
    needed = std::max(needed, seed + 1);
  }
  RecordProperty("seeds_needed", static_cast<int>(needed));
}

INSTANTIATE_TEST_SUITE_P(Table, AdversarialLitmus, testing::ValuesIn(kTests),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace rocemu::test::litmus
