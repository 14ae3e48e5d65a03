#include "wire/opcode.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace rocemu::wire {
namespace {

// The number of bytes between BTH and payload, by opcode, from IBTA's tables of packets. They are
// written here as numbers, independently of the table of headers that they check.
const std::map<int, size_t> kBytesBetweenBthAndPayload = {
    // RC: SEND, RDMA WRITE, READ, responses, atomics, SEND with invalidate, FLUSH, ATOMIC WRITE
    {0x00, 0},
    {0x01, 0},
    {0x02, 0},
    {0x03, 4},
    {0x04, 0},
    {0x05, 4},
    {0x06, 16},
    {0x07, 0},
    {0x08, 0},
    {0x09, 4},
    {0x0a, 16},
    {0x0b, 20},
    {0x0c, 16},
    {0x0d, 4},
    {0x0e, 0},
    {0x0f, 4},
    {0x10, 4},
    {0x11, 4},
    {0x12, 12},
    {0x13, 28},
    {0x14, 28},
    {0x16, 4},
    {0x17, 4},
    {0x1c, 20},
    {0x1d, 16},
    // UC: SEND, RDMA WRITE
    {0x20, 0},
    {0x21, 0},
    {0x22, 0},
    {0x23, 4},
    {0x24, 0},
    {0x25, 4},
    {0x26, 16},
    {0x27, 0},
    {0x28, 0},
    {0x29, 4},
    {0x2a, 16},
    {0x2b, 20},
    // UD
    {0x64, 8},
    {0x65, 12},
    // CNP
    {0x81, 16},
    // XRC: as for RC, with an XRCETH in every request
    {0xa0, 4},
    {0xa1, 4},
    {0xa2, 4},
    {0xa3, 8},
    {0xa4, 4},
    {0xa5, 8},
    {0xa6, 20},
    {0xa7, 4},
    {0xa8, 4},
    {0xa9, 8},
    {0xaa, 20},
    {0xab, 24},
    {0xac, 20},
    {0xad, 4},
    {0xae, 0},
    {0xaf, 4},
    {0xb0, 4},
    {0xb1, 4},
    {0xb2, 12},
    {0xb3, 32},
    {0xb4, 32},
    {0xb6, 8},
    {0xb7, 8},
};

template <class Check>
void for_each_opcode(Check check) {
  for (int value = 0; value < 256; ++value) {
    if (const OpcodeInfo* info = find_opcode(static_cast<uint8_t>(value))) {
      SCOPED_TRACE(info->name);
      check(*info);
    }
  }
}

TEST(Opcode, ExactlyTheOpcodesOfTheSpecificationAreKnown) {
  for (int value = 0; value < 256; ++value) {
    const OpcodeInfo* info = find_opcode(static_cast<uint8_t>(value));
    EXPECT_EQ(info != nullptr, kBytesBetweenBthAndPayload.contains(value)) << value;
    if (info != nullptr) {
      EXPECT_EQ(static_cast<int>(info->opcode), value);
    }
  }
}

TEST(Opcode, TheHeadersHaveTheSizesOfTheSpecification) {
  for_each_opcode([](const OpcodeInfo& info) {
    EXPECT_EQ(info.headers_size, kBytesBetweenBthAndPayload.at(static_cast<int>(info.opcode)));
    EXPECT_EQ(info.headers.size_in_bytes(), info.headers_size);
  });
}

TEST(Opcode, EveryNameIsUniqueAndBeginsWithTheTransport) {
  const std::map<Transport, std::string_view> prefixes = {{Transport::kRc, "RC "},
                                                          {Transport::kUc, "UC "},
                                                          {Transport::kUd, "UD "},
                                                          {Transport::kCnp, "CNP"},
                                                          {Transport::kXrc, "XRC "}};
  std::set<std::string_view> names;
  for_each_opcode([&](const OpcodeInfo& info) {
    EXPECT_TRUE(info.name.starts_with(prefixes.at(info.transport)));
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_EQ(name(info.opcode), info.name);
  });
  EXPECT_EQ(name(static_cast<Opcode>(0x15)), "unknown opcode");
}

TEST(Opcode, TheNameSaysWhatTheFlagsSay) {
  for_each_opcode([](const OpcodeInfo& info) {
    const auto has_word = [&](std::string_view word) {
      return info.name.find(word) != std::string_view::npos;
    };
    EXPECT_EQ(info.has(ExtendedHeader::kImmDt), has_word("Immediate"));
    EXPECT_EQ(info.has(ExtendedHeader::kIeth), has_word("Invalidate"));
    EXPECT_EQ(info.is_response, has_word("Response") || has_word("Acknowledge"));
    if (has_word("First")) {
      EXPECT_TRUE(info.is_first && !info.is_last);
    } else if (has_word("Middle")) {
      EXPECT_TRUE(!info.is_first && !info.is_last);
    } else if (has_word("Last")) {
      EXPECT_TRUE(!info.is_first && info.is_last);
    } else {
      EXPECT_TRUE(info.is_first && info.is_last);
    }
  });
}

TEST(Opcode, SendsAndImmediatesNeedAReceive) {
  for_each_opcode([](const OpcodeInfo& info) {
    EXPECT_EQ(info.needs_receive,
              info.operation == Operation::kSend || info.has(ExtendedHeader::kImmDt));
  });
}

TEST(Opcode, OnlySomeHaveNoPayload) {
  for_each_opcode([](const OpcodeInfo& info) {
    const bool is_bare =
        info.operation == Operation::kReadRequest || info.operation == Operation::kAck ||
        info.operation == Operation::kAtomicAck || info.operation == Operation::kCompareSwap ||
        info.operation == Operation::kFetchAdd || info.operation == Operation::kFlush ||
        info.operation == Operation::kCongestionNotification;
    EXPECT_EQ(info.has_payload, !is_bare);
  });
}

TEST(Opcode, AnXrcRowIsTheRcRowWithAnXrcethInRequests) {
  for_each_opcode([](const OpcodeInfo& xrc) {
    if (xrc.transport != Transport::kXrc) return;
    const OpcodeInfo& rc = *find_opcode(static_cast<uint8_t>(static_cast<int>(xrc.opcode) & 0x1f));
    EXPECT_EQ(xrc.name, "X" + std::string(rc.name));
    EXPECT_EQ(xrc.operation, rc.operation);
    EXPECT_EQ(xrc.has_payload, rc.has_payload);
    EXPECT_EQ(xrc.is_first, rc.is_first);
    EXPECT_EQ(xrc.is_last, rc.is_last);
    EXPECT_EQ(xrc.needs_receive, rc.needs_receive);
    EXPECT_EQ(xrc.is_response, rc.is_response);

    std::vector<ExtendedHeader> expected(rc.headers.begin(), rc.headers.end());
    if (!rc.is_response) expected.insert(expected.begin(), ExtendedHeader::kXrceth);
    EXPECT_EQ(std::vector(xrc.headers.begin(), xrc.headers.end()), expected);
  });
}

TEST(Opcode, HeadersAreInWireOrder) {
  const auto headers = [](Opcode opcode) {
    const HeaderList& list = find_opcode(opcode)->headers;
    return std::vector(list.begin(), list.end());
  };
  using enum ExtendedHeader;
  EXPECT_EQ(headers(Opcode::kRcWriteOnlyImm), (std::vector{kReth, kImmDt}));
  EXPECT_EQ(headers(Opcode::kRcAtomicAck), (std::vector{kAeth, kAtomicAckEth}));
  EXPECT_EQ(headers(Opcode::kRcFlush), (std::vector{kFeth, kReth}));
  EXPECT_EQ(headers(Opcode::kUdSendOnlyImm), (std::vector{kDeth, kImmDt}));
  EXPECT_EQ(headers(Opcode::kXrcWriteOnlyImm), (std::vector{kXrceth, kReth, kImmDt}));
}

}  // namespace
}  // namespace rocemu::wire
