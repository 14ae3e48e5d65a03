// Tests that libpcap can read the files that PcapWriter writes.
#include "emulator/capture/pcap_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
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

// Returns an empty UDP packet from port 49153 of ::1 to port 4791 of ::1. RFC 8200, 8.1: the sum is
// 1 + 1 + 8 + 17 (pseudo-header) + c001 + 12b7 + 8 = d2db, so the checksum is 2d24.
std::vector<uint8_t> ipv6_frame() {
  std::vector<uint8_t> frame(14 + 40 + 8);
  frame[12] = 0x86;
  frame[13] = 0xdd;
  frame[14] = 0x60;
  frame[14 + 5] = 8;
  frame[14 + 6] = 17;
  frame[14 + 8 + 15] = frame[14 + 24 + 15] = 1;
  constexpr uint8_t kUdp[] = {0xc0, 0x01, 0x12, 0xb7, 0, 8, 0, 0};
  std::copy(std::begin(kUdp), std::end(kUdp), frame.begin() + 14 + 40);
  return frame;
}

TEST(PcapWriter, WritesTheUdpChecksumThatAnIpv6FrameLacks) {
  const daemon::TempDir dir;
  std::vector<uint8_t> expected = ipv6_frame();
  expected[60] = 0x2d;
  expected[61] = 0x24;
  for (const uint64_t last_frames : {uint64_t{0}, uint64_t{1}}) {
    for (const size_t kept : {size_t{65535}, size_t{62}, size_t{61}, size_t{60}}) {
      const std::string path = dir / "out.pcap";
      {
        PcapWriter writer(open_capture_file(path), kStart, SlowReader::kIsWaitedFor,
                          {.snap_length = kept, .last_frames = last_frames});
        writer.write(at(0ns), ipv6_frame());
      }
      const std::vector<ReadFrame> frames = read_back(path);
      ASSERT_EQ(frames.size(), 1u);
      std::vector<uint8_t> cut = kept < 62 ? ipv6_frame() : expected;
      if (kept < cut.size()) cut.resize(kept);
      EXPECT_EQ(frames[0].bytes, cut) << kept;
    }
  }
}

TEST(PcapWriter, CutsFramesAtTheSnapLengthAndKeepsTheirSize) {
  const daemon::TempDir dir;
  const std::string path = dir / "out.pcap";
  PcapWriter(open_capture_file(path), kStart, SlowReader::kIsWaitedFor, {.snap_length = 96})
      .write(at(0ns), std::vector<uint8_t>(4300, 0x5a));
  char error[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> file(pcap_open_offline(path.c_str(), error),
                                                        pcap_close);
  ASSERT_NE(file, nullptr) << error;
  EXPECT_EQ(pcap_snapshot(file.get()), 96);
  pcap_pkthdr* header;
  const u_char* bytes;
  ASSERT_EQ(pcap_next_ex(file.get(), &header, &bytes), 1);
  EXPECT_EQ(header->caplen, 96u);
  EXPECT_EQ(header->len, 4300u);
  EXPECT_EQ(pcap_next_ex(file.get(), &header, &bytes), PCAP_ERROR_BREAK) << "the end of the file";
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

/// Tests a capture to a pipe.
class PcapStream : public testing::Test {
 protected:
  PcapStream() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader.reset(ends[0]);
    writer = std::make_unique<PcapWriter>(CaptureFile{"live", UniqueFd(ends[1]), -1, ""}, kStart,
                                          SlowReader::kMissesFrames);
  }
  /// Writes far more bytes than the pipe and the writer's own buffer hold together.
  void write_too_much() {
    const std::vector<uint8_t> frame(4096);
    for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(writer->write(at(0ns), frame));
    EXPECT_TRUE(writer->flush());
  }

  UniqueFd reader;
  std::unique_ptr<PcapWriter> writer;
};

TEST_F(PcapStream, LeavesFramesOutInsteadOfWaitingForItsReader) {
  write_too_much();
  EXPECT_GT(writer->lost_frames(), 0u);
  EXPECT_TRUE(writer->is_open());
}

TEST_F(PcapStream, IsGivenUpAtTheEndIfItsReaderTakesNothing) {
  write_too_much();
  EXPECT_FALSE(writer->finish());
  EXPECT_THAT(writer->error(), HasSubstr("live: its reader has stopped reading"));
  writer.reset();  // the destructor must not wait either
}

TEST_F(PcapStream, SaysThatItsReaderHasGone) {
  reader.reset();
  std::signal(SIGPIPE, SIG_IGN);
  writer->write(at(0ns), std::vector<uint8_t>(60));
  EXPECT_FALSE(writer->finish());
  EXPECT_THAT(writer->error(), HasSubstr("live: its reader has exited"));
  EXPECT_TRUE(writer->write(at(0ns), std::vector<uint8_t>(60))) << "it is told once";
}

TEST_F(PcapStream, EndsInOrderWhileItsReaderReads) {
  std::vector<std::byte> read_bytes;
  std::thread thread([&] {
    std::vector<std::byte> piece(65536);
    ssize_t size;
    while ((size = read(reader.get(), piece.data(), piece.size())) > 0) {
      read_bytes.insert(read_bytes.end(), piece.begin(), piece.begin() + size);
    }
  });
  for (int i = 0; i < 1000; ++i) writer->write(at(0ns), std::vector<uint8_t>(1000));
  EXPECT_TRUE(writer->finish()) << writer->error();
  EXPECT_EQ(writer->lost_frames(), 0u);
  writer.reset();
  thread.join();
  EXPECT_EQ(read_bytes.size(), 24u + 1000 * (16 + 1000));
}

TEST(CaptureFile, AFifoWithoutAReaderIsRefused) {
  const daemon::TempDir dir;
  const std::string path = dir / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const CaptureFile file = open_capture_file(path, {}, std::chrono::seconds(0));
  EXPECT_FALSE(file.fd);
  EXPECT_THAT(file.error, HasSubstr(path + ": no program reads this FIFO"));
}

TEST(CaptureFile, ANameOfADescriptorIsThatDescriptor) {
  for (const auto& [name, descriptor] :
       {std::pair("-", 1), {"/dev/stdout", 1}, {"/dev/fd/0", 0}, {"/proc/self/fd/2", 2}}) {
    EXPECT_EQ(open_capture_file(name).descriptor, descriptor) << name;
  }
  for (const char* name : {"/dev/fd/", "/dev/fd/-1", "/dev/fd/1x", "/dev/fd/99999999999"}) {
    EXPECT_EQ(open_capture_file(name).descriptor, -1) << name;
  }
}

}  // namespace
}  // namespace rocemu::capture
