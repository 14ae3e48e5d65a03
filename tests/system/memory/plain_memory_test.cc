// Tests that registered memory behaves in all respects like memory that was never registered, and
// that the rest of the process is unchanged too.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "tests/support/page_size.h"
#include "tests/system/map_pages.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr size_t kPages = 8;
const size_t kSize = kPages * kPageSize;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

/// Returns what smaps reports about all mappings of [begin, end), with addresses relative to
/// `begin`: permissions, name and VmFlags, but not the amount of memory in use.
std::string mappings(const uint8_t* begin, const uint8_t* end) {
  const auto first = reinterpret_cast<uint64_t>(begin), last = reinterpret_cast<uint64_t>(end);
  std::ostringstream seen;
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uint64_t from = 0, to = 0;
    int used = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %n", &from, &to, &used) == 2 && used != 0) {
      inside = from >= first && from < last;
      if (inside)
        seen << std::hex << from - first << '-' << to - first << ' '
             << line.substr(static_cast<size_t>(used));
    } else if (inside && (line.starts_with("VmFlags") || line.starts_with("Locked"))) {
      seen << ' ' << line << '\n';
    }
  }
  return seen.str();
}

/// Runs `act` in a child of fork(), and returns the text that it returned.
std::string in_child(const std::function<std::string()>& act) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = act();
    if (write(ends[1], said.data(), said.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof(part))) > 0;) {
    said.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return said + " status " + std::to_string(status);
}

/// Returns for each page one of its bytes, or that the page cannot be read.
std::string contents(const uint8_t* pages, size_t count = kPages) {
  std::ostringstream seen;
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  for (size_t i = 0; i < count; ++i) {
    uint8_t byte = 0;
    if (write(ends[1], pages + i * kPageSize + 5, 1) == 1 && read(ends[0], &byte, 1) == 1) {
      seen << int{byte} << ' ';
    } else {
      seen << "- ";
    }
  }
  close(ends[0]);
  close(ends[1]);
  return seen.str();
}

/// Returns the result of a system call, with errno, as text.
std::string result(long value) {
  return value == -1 ? std::string("-1: ") + std::strerror(errno) : std::to_string(value);
}

/// An action on memory, which is performed on registered and on ordinary memory to compare the
/// results.
struct Action {
  const char* name;
  std::string (*act)(uint8_t* pages);

  friend void PrintTo(const Action& action, std::ostream* to) { *to << action.name; }
};

std::string move_to(uint8_t* pages, size_t old_size, size_t new_size) {
  auto* moved = static_cast<uint8_t*>(mremap(pages, old_size, new_size, MREMAP_MAYMOVE));
  if (static_cast<void*>(moved) == MAP_FAILED) return result(-1);
  const std::string seen =
      contents(moved, new_size / kPageSize) + contents(pages) + mappings(moved, moved + new_size);
  munmap(moved, new_size);
  return seen;
}

const Action kActions[] = {
    {"Write",
     [](uint8_t* pages) {
       std::memset(pages + kPageSize, 77, 2 * kPageSize);
       return in_child([&] {
         std::memset(pages, 3, kPageSize);
         return contents(pages);
       });
     }},
    {"ProtectSome",
     [](uint8_t* pages) {
       return result(mprotect(pages + kPageSize, kPageSize, PROT_NONE)) +
              result(mprotect(pages + 2 * kPageSize, kPageSize, PROT_READ));
     }},
    {"ProtectAndBack",
     [](uint8_t* pages) {
       return result(mprotect(pages, kSize, PROT_NONE)) + contents(pages) +
              result(mprotect(pages, kSize, PROT_READ | PROT_WRITE | PROT_EXEC));
     }},
    {"Grow", [](uint8_t* pages) { return move_to(pages, kSize, 3 * kSize); }},
    {"Shrink", [](uint8_t* pages) { return move_to(pages, kSize, kSize / 2); }},
    {"MoveSome", [](uint8_t* pages) { return move_to(pages, 2 * kPageSize, 5 * kPageSize); }},
    {"UnmapSome",
     [](uint8_t* pages) { return result(munmap(pages + 3 * kPageSize, 2 * kPageSize)); }},
    {"MapOver",
     [](uint8_t* pages) {
       return std::to_string(mmap(pages + kPageSize, 2 * kPageSize, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                                  0) == pages + kPageSize);
     }},
    {"DontNeed",
     [](uint8_t* pages) {
       return result(madvise(pages + kPageSize, 3 * kPageSize, MADV_DONTNEED));
     }},
    {"DontDump", [](uint8_t* pages) { return result(madvise(pages, kSize, MADV_DONTDUMP)); }},
    {"WipeOnFork",
     [](uint8_t* pages) {
       return result(madvise(pages, 4 * kPageSize, MADV_WIPEONFORK)) +
              in_child([&] { return contents(pages); });
     }},
    {"DontFork",
     [](uint8_t* pages) {
       return result(madvise(pages + kPageSize, kPageSize, MADV_DONTFORK)) +
              in_child([&] { return contents(pages); });
     }},
    {"Lock",
     [](uint8_t* pages) {
       return result(mlock(pages, kSize)) + result(munlock(pages + 2 * kPageSize, kPageSize));
     }},
    {"ForkWithoutDescriptors",
     [](uint8_t* pages) {
       rlimit before{};
       getrlimit(RLIMIT_NOFILE, &before);
       int ends[2];
       if (pipe(ends) != 0) return result(-1);
       rlimit none = before;
       none.rlim_cur = 0;
       setrlimit(RLIMIT_NOFILE, &none);
       const pid_t child = fork();
       if (child == 0) {
         std::memset(pages, 9, kSize);
         _exit(0);
       }
       setrlimit(RLIMIT_NOFILE, &before);
       int status = 0;
       waitpid(child, &status, 0);
       close(ends[0]);
       close(ends[1]);
       return std::to_string(status);
     }},
};

/// Pages that the action of a test may unmap or move.
class Pages {
 public:
  Pages() : data_(map_pages(kSize)) {
    for (size_t i = 0; i < kPages; ++i)
      std::memset(data_ + i * kPageSize, static_cast<int>(i + 10), kPageSize);
  }
  ~Pages() { munmap(data_, kSize); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uint8_t* data() const { return data_; }
  /// Describes the pages after the action.
  std::string state() const {
    return contents(data_) + "child " + in_child([&] { return contents(data_); }) + "\n" +
           mappings(data_, data_ + kSize);
  }

 private:
  uint8_t* data_;
};

enum class When { kRegistered, kDeregisteredThen, kRegisteredTwice, kReceivedInto };

class PlainMemory : public ConnectedTest,
                    public testing::WithParamInterface<std::tuple<Action, When>> {
 protected:
  MrPtr enter(const Pages& pages, size_t offset = 0, size_t length = kSize) {
    MrPtr region(ibv_reg_mr(pd.get(), pages.data() + offset, length, kAccess));
    EXPECT_NE(region, nullptr) << std::strerror(errno);
    return region;
  }
  /// Fills the page with the bytes that receive_into() receives, for the model without a NIC.
  static void fill(const Pages& pages) { std::memset(pages.data() + kPageSize, 0x5b, kPageSize); }
  void receive_into(const Pages& pages, const ibv_mr& region) {
    std::memset(slot(0), 0x5b, kPageSize);
    ibv_sge to{reinterpret_cast<uint64_t>(pages.data() + kPageSize),
               static_cast<uint32_t>(kPageSize), region.lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &to;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv = nullptr;
    ASSERT_EQ(ibv_post_recv(receiver.get(), &recv, &bad_recv), 0);
    ibv_sge from = {reinterpret_cast<uint64_t>(slot(0)), static_cast<uint32_t>(kPageSize),
                    mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    for (ibv_cq* queue : {other_cq.get(), cq.get()}) {
      const std::vector<ibv_wc> completions = poll_for(queue, 1);
      ASSERT_EQ(completions.size(), 1u);
      ASSERT_EQ(completions[0].status, IBV_WC_SUCCESS);
    }
  }
};

TEST_P(PlainMemory, BehavesAsIfItWereNotRegistered) {
  const auto& [action, when] = GetParam();
  const Pages model, pages;
  MrPtr region = enter(pages), other;
  if (when == When::kRegisteredTwice) other = enter(pages, kPageSize + 100, 3 * kPageSize);
  if (when == When::kReceivedInto) {
    fill(model);
    ASSERT_NO_FATAL_FAILURE(receive_into(pages, *region));
  }
  if (when == When::kDeregisteredThen) region.reset();
  EXPECT_EQ(pages.state(), model.state()) << "before";
  const std::string expected = action.act(model.data());
  EXPECT_EQ(action.act(pages.data()), expected);
  EXPECT_EQ(pages.state(), model.state()) << "while it is registered";
  region.reset();
  other.reset();
  EXPECT_EQ(pages.state(), model.state()) << "after it was deregistered";
}

std::string name_of(const testing::TestParamInfo<std::tuple<Action, When>>& test) {
  constexpr const char* kWhen[] = {"Registered", "DeregisteredThen", "RegisteredTwice",
                                   "ReceivedInto"};
  return std::string(std::get<0>(test.param).name) +
         kWhen[static_cast<size_t>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Each, PlainMemory,
    testing::Combine(testing::ValuesIn(kActions),
                     testing::Values(When::kRegistered, When::kDeregisteredThen,
                                     When::kRegisteredTwice, When::kReceivedInto)),
    name_of);

/// Describes the process, except for its memory.
std::string of_process() {
  std::ostringstream seen;
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_AS, RLIMIT_STACK, RLIMIT_CORE,
                              RLIMIT_FSIZE, RLIMIT_NPROC}) {
    rlimit limit{};
    getrlimit(resource, &limit);
    seen << limit.rlim_cur << '/' << limit.rlim_max << ' ';
  }
  seen << "policy " << sched_getscheduler(0) << " nice " << getpriority(PRIO_PROCESS, 0) << '\n';
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    for (const char* wanted :
         {"Sig", "Shd", "Cpus_allowed:", "Mems_allowed:", "Threads:", "Seccomp:", "NoNewPrivs:"}) {
      if (line.starts_with(wanted) && !line.starts_with("SigQ")) seen << line << '\n';
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // ignored: the directory's descriptor is closed already
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.find("/fd") == target.npos) seen << entry.path() << " -> " << target << '\n';
  }
  return seen.str();
}

TEST_F(ConnectedTest, RegistrationHasNoOtherEffectOnTheProcess) {
  const std::string before = of_process();
  for (int i = 0; i < 3; ++i) {
    const Pages pages;
    MrPtr region(ibv_reg_mr(pd.get(), pages.data(), kSize, kAccess));
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(of_process(), before);
    EXPECT_EQ(in_child([&] { return contents(pages.data()); }),
              "10 11 12 13 14 15 16 17  status 0");
    EXPECT_EQ(of_process(), before);
    ASSERT_EQ(post_recv(receiver.get(), 1), 0);
    ASSERT_EQ(post_send(sender.get(), 2), 0);
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    ASSERT_EQ(poll_for(other_cq.get(), 1).size(), 1u);
    EXPECT_EQ(of_process(), before);
    region.reset();
    EXPECT_EQ(of_process(), before);
  }
}

// ibv_reg_mr(3) fails for memory that a NIC cannot pin.
TEST_F(ConnectedTest, WhatCannotBePinnedCannotBeRegistered) {
  const Pages pages;
  const auto error_of = [&](unsigned access) {
    errno = 0;
    const MrPtr region(ibv_reg_mr(pd.get(), pages.data(), kSize, access));
    return region != nullptr ? 0 : errno;
  };
  mprotect(pages.data() + kPageSize, kPageSize, PROT_READ);
  EXPECT_EQ(error_of(0), 0);
  EXPECT_EQ(error_of(IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(error_of(IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(error_of(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), 0);
  mprotect(pages.data() + kPageSize, kPageSize, PROT_NONE);
  EXPECT_EQ(error_of(0), EFAULT);
  munmap(pages.data() + kPageSize, kPageSize);
  EXPECT_EQ(error_of(0), EFAULT) << "a hole in the middle";
  EXPECT_EQ(error_of(IBV_ACCESS_ON_DEMAND), 0);
}

}  // namespace
}  // namespace rocemu::system_test
