// Runs random programs of two connected applications, over RC, XRC, UC and UD and a link that
// loses, duplicates and reorders frames. Their memory and completions must equal those of a simple
// model.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "tests/property/program.h"
#include "tests/property/world.h"

namespace rc {

using rocemu::property::Act;
using rocemu::property::Kind;
using rocemu::property::Link;
using rocemu::property::Op;
using rocemu::property::Program;

/// Generates sizes near multiples of the MTU, where errors are likely.
Gen<uint32_t> sizes() {
  return gen::map(gen::pair(gen::inRange(0, 6), gen::inRange(-1, 2)), [](std::pair<int, int> p) {
    return static_cast<uint32_t>(
        std::max(0, p.first * static_cast<int>(rocemu::property::kMtu) + p.second * (p.first + 1)));
  });
}

template <>
struct Arbitrary<Op> {
  static Gen<Op> arbitrary() {
    return gen::build<Op>(
        gen::set(&Op::act,
                 gen::weightedElement<Act>({{12, Act::kSend},          {6, Act::kSendImm},
                                            {10, Act::kWrite},         {6, Act::kWriteImm},
                                            {8, Act::kRead},           {5, Act::kReadWritten},
                                            {5, Act::kCompareSwap},    {5, Act::kFetchAdd},
                                            {6, Act::kBind},           {2, Act::kLocalInvalidate},
                                            {4, Act::kSendInvalidate}, {8, Act::kWriteWindow},
                                            {20, Act::kReceive},       {1, Act::kShortReceive},
                                            {3, Act::kLimit},          {8, Act::kWait},
                                            {3, Act::kResume},         {1, Act::kBadWrite},
                                            {1, Act::kBadRead},        {1, Act::kStaleWindow},
                                            {1, Act::kBadAtomic},      {1, Act::kBadSource},
                                            {1, Act::kForeignWrite},   {1, Act::kForeignSource},
                                            {1, Act::kForeignBind},    {1, Act::kForeignWindow},
                                            {1, Act::kTooLong}})),
        gen::set(&Op::side, gen::inRange<uint8_t>(0, rocemu::property::kSides)),
        gen::set(&Op::connection, gen::inRange<uint8_t>(0, rocemu::property::kConnections)),
        gen::set(&Op::word, gen::inRange<uint8_t>(0, 4)),
        gen::set(&Op::sges, gen::inRange<uint8_t>(1, 4)),
        gen::set(&Op::signaled, gen::map(gen::inRange(0, 4), [](int n) { return n != 3; })),
        gen::set(&Op::fenced, gen::map(gen::inRange(0, 4), [](int n) { return n == 3; })),
        gen::set(&Op::is_inline, gen::map(gen::inRange(0, 3), [](int n) { return n == 2; })),
        gen::set(&Op::size, sizes()));
  }
};

template <>
struct Arbitrary<Link> {
  static Gen<Link> arbitrary() {
    return gen::build<Link>(gen::set(&Link::seed, gen::arbitrary<uint32_t>()),
                            gen::set(&Link::loss, gen::inRange<uint8_t>(0, 25)),
                            gen::set(&Link::doubling, gen::inRange<uint8_t>(0, 25)),
                            gen::set(&Link::lateness, gen::inRange<uint8_t>(0, 40)));
  }
};

template <>
struct Arbitrary<Program> {
  static Gen<Program> arbitrary() {
    return gen::build<Program>(
        gen::set(&Program::first_psn, gen::oneOf(gen::inRange<uint32_t>(0, 1 << 24),
                                                 gen::inRange<uint32_t>((1 << 24) - 40, 1 << 24))),
        gen::set(&Program::rd_atomic, gen::inRange<uint8_t>(1, 5)),
        gen::set(&Program::kinds,
                 gen::container<std::array<Kind, rocemu::property::kConnections>>(
                     gen::element(Kind::kRc, Kind::kRcShared, Kind::kXrc, Kind::kUc, Kind::kUd))),
        gen::set(&Program::pds, gen::container<std::array<uint8_t, rocemu::property::kConnections>>(
                                    gen::inRange<uint8_t>(0, 4))),
        gen::set(&Program::link), gen::set(&Program::ops));
  }
};

}  // namespace rc

namespace {

constexpr const char* kUsage = R"(usage: property_tests [--programs N] [--seed S]

Runs N random verb programs (5000 unless said otherwise; 100000 takes some minutes) on two devices
whose link loses, doubles and reorders frames, and compares memory and completions with a model.
The seed is printed; --seed repeats a run. A program that fails is made as small as possible.
)";

bool check_programs() {
  uint64_t operations = 0, completions = 0, frames = 0, lost = 0;
  const bool passed = rc::check("memory and completions equal a model's, whatever the link does",
                                [&](const rocemu::property::Program& program) {
                                  rocemu::property::World world(program);
                                  const std::string wrong = world.run();
                                  operations += program.ops.size();
                                  completions += world.completions();
                                  frames += world.network().frames;
                                  lost += world.network().lost;
                                  if (!wrong.empty()) RC_FAIL(wrong);
                                });
  std::cerr << fmt::format("{} operations, {} completions, {} frames, {} of them lost\n",
                           operations, completions, frames, lost);
  return passed;
}

}  // namespace

int main(int argc, char** argv) {
  std::string programs = "5000", seed;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--programs") == 0 && has_value) {
      programs = argv[++i];
    } else if (std::strcmp(argv[i], "--seed") == 0 && has_value) {
      seed = argv[++i];
    } else {
      const bool asked = std::strcmp(argv[i], "--help") == 0;
      (asked ? std::cout : std::cerr) << kUsage;
      return asked ? 0 : 2;
    }
  }
  std::string parameters = "max_success=" + programs + " max_size=150";
  if (!seed.empty()) parameters += " seed=" + seed;
  setenv("RC_PARAMS", parameters.c_str(), 1);
  return check_programs() ? 0 : 1;
}
