// What we write, libpcap reads.
#include "emulator/capture/pcap_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <vector>

#include "tests/daemon/temp_dir.h"

namespace rocemu::capture {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct ReadFrame {
  std::chrono::nanoseconds time;
  std::vector<uint8_t> bytes;
};

std::vector<ReadFrame> read_back(const std::string& path) {
  std::vector<ReadFrame> frames;
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* file =
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (file == nullptr) {
    ADD_FAILURE() << error;
    return frames;
  }
  EXPECT_EQ(pcap_datalink(file), DLT_EN10MB);
  pcap_pkthdr* header;
  const u_char* bytes;
  while (pcap_next_ex(file, &header, &bytes) == 1) {
    frames.push_back(
        {std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec),
         {bytes, bytes + header->caplen}});
  }
  pcap_close(file);
  return frames;
}

constexpr std::chrono::system_clock::time_point kStart{1'700'000'000s};
constexpr engine::Instant at(engine::Duration time) {
  return engine::Instant(time);
}

TEST(PcapWriter, KeepsBytesAndNanoseconds) {
  const daemon::TempDir dir;
  const std::string path = dir / "out.pcap";
  {
    PcapWriter writer(path, kStart);
    ASSERT_TRUE(writer.is_open()) << writer.error();
    EXPECT_TRUE(writer.write(at(1ns), std::vector<uint8_t>{1, 2, 3}));
    EXPECT_TRUE(writer.write(at(2s + 123'456'789ns), std::vector<uint8_t>(4300, 0x5a)));
  }
  const std::vector<ReadFrame> frames = read_back(path);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].time, 1'700'000'000s + 1ns);
  EXPECT_EQ(frames[0].bytes, (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(frames[1].time, 1'700'000'002s + 123'456'789ns);
  EXPECT_EQ(frames[1].bytes, std::vector<uint8_t>(4300, 0x5a));
}

TEST(PcapWriter, IsReadableWhileItRunsOnceFlushed) {
  const daemon::TempDir dir;
  const std::string path = dir / "out.pcap";
  PcapWriter writer(path, kStart);
  EXPECT_EQ(read_back(path).size(), 0u);
  writer.write(at(0ns), std::vector<uint8_t>(60));
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(read_back(path).size(), 1u);
}

TEST(PcapWriter, NamesPathAndReasonWhenItCannotWrite) {
  const PcapWriter writer("/nonexistent/out.pcap", kStart);
  EXPECT_FALSE(writer.is_open());
  EXPECT_THAT(writer.error(), HasSubstr("/nonexistent/out.pcap: No such file or directory"));
}

TEST(PcapWriter, SaysOnceThatTheDiskIsFull) {
  PcapWriter writer("/dev/full", kStart);
  EXPECT_FALSE(writer.is_open()) << "known from the file's header on";
  EXPECT_THAT(writer.error(), HasSubstr("/dev/full: No space left on device"));
  EXPECT_TRUE(writer.write(at(0ns), std::vector<uint8_t>(60)));
  EXPECT_TRUE(writer.flush());
}

}  // namespace
}  // namespace rocemu::capture
