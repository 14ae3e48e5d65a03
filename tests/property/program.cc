#include "tests/property/program.h"

#include <fmt/format.h>

#include <ostream>

namespace rocemu::property {
namespace {

const char* name(Act act) {
  switch (act) {
    case Act::kSend:
      return "send";
    case Act::kSendImm:
      return "send-imm";
    case Act::kWrite:
      return "write";
    case Act::kWriteImm:
      return "write-imm";
    case Act::kRead:
      return "read";
    case Act::kReadWritten:
      return "read-written";
    case Act::kCompareSwap:
      return "compare-swap";
    case Act::kFetchAdd:
      return "fetch-add";
    case Act::kBind:
      return "bind";
    case Act::kLocalInvalidate:
      return "local-invalidate";
    case Act::kSendInvalidate:
      return "send-invalidate";
    case Act::kWriteWindow:
      return "write-window";
    case Act::kReceive:
      return "receive";
    case Act::kShortReceive:
      return "short-receive";
    case Act::kLimit:
      return "limit";
    case Act::kWait:
      return "wait";
    case Act::kResume:
      return "resume";
    case Act::kBadWrite:
      return "bad-write";
    case Act::kBadRead:
      return "bad-read";
    case Act::kStaleWindow:
      return "stale-window";
    case Act::kBadAtomic:
      return "bad-atomic";
    case Act::kBadSource:
      return "bad-source";
    case Act::kForeignWrite:
      return "foreign-write";
    case Act::kForeignSource:
      return "foreign-source";
    case Act::kForeignBind:
      return "foreign-bind";
    case Act::kForeignWindow:
      return "foreign-window";
    case Act::kTooLong:
      return "too-long";
  }
  return "?";
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::kRc:
      return "RC";
    case Kind::kRcShared:
      return "RC with SRQ";
    case Kind::kXrc:
      return "XRC";
    case Kind::kUc:
      return "UC";
    case Kind::kUd:
      return "UD";
  }
  return "?";
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const Op& op) {
  os << fmt::format("{} of side {} on connection {}, size {}", name(op.act), op.side, op.connection,
                    op.size);
  if (op.act == Act::kCompareSwap || op.act == Act::kFetchAdd || op.act == Act::kLimit)
    os << ", word " << int{op.word};
  if (op.sges != 1) os << ", " << int{op.sges} << " SGEs";
  if (!op.signaled) os << ", unsignaled";
  if (op.fenced) os << ", fenced";
  if (op.is_inline) os << ", inline";
  return os;
}

std::ostream& operator<<(std::ostream& os, const Program& program) {
  os << fmt::format(
      "first PSN {:#x}, {} READs and atomics at a time; link with seed {}, {} % lost, {} % "
      "doubled, "
      "{} % late\n",
      program.first_psn, program.rd_atomic, program.link.seed, program.link.loss,
      program.link.doubling, program.link.lateness);
  for (size_t i = 0; i < program.kinds.size(); ++i) {
    os << "  connection " << i << ": " << name(program.kinds[i]) << ", PDs " << (program.pds[i] & 1)
       << " and " << (program.pds[i] >> 1 & 1) << '\n';
  }
  for (size_t i = 0; i < program.ops.size(); ++i) os << "  " << i << ": " << program.ops[i] << '\n';
  return os;
}

}  // namespace rocemu::property
