// Measures the wire codec: how long it takes to make, check and parse a frame of each size.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "wire/identification.h"
#include "wire/packet.h"

namespace rocemu {
namespace {

wire::Packet send_only(const std::vector<uint8_t>& payload) {
  wire::Packet packet;
  packet.src_ip = wire::IpAddress::from_v4(10, 0, 0, 1);
  packet.dst_ip = wire::IpAddress::from_v4(10, 0, 0, 2);
  packet.bth.opcode = wire::Opcode::kRcSendOnly;
  packet.bth.dest_qpn = 0x11;
  packet.payload = payload;
  return packet;
}

std::vector<uint8_t> frame_of(size_t payload_size) {
  const std::vector<uint8_t> payload(payload_size, 0x5a);
  const wire::Packet packet = send_only(payload);
  std::vector<uint8_t> frame(wire::frame_size(packet, payload_size));
  wire::emit_frame(packet, frame);
  return frame;
}

void codec_emit_headers(benchmark::State& state) {
  const std::vector<uint8_t> payload(static_cast<size_t>(state.range(0)), 0x5a);
  const wire::Packet packet = send_only(payload);
  std::vector<uint8_t> frame(wire::frame_size(packet, payload.size()));
  for (auto _ : state) {
    benchmark::DoNotOptimize(wire::emit_headers(packet, payload.size(), frame));
    benchmark::ClobberMemory();
  }
}

void codec_write_icrc(benchmark::State& state) {
  std::vector<uint8_t> frame = frame_of(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    wire::write_icrc(frame);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(frame.size()));
}

void codec_change_identification(benchmark::State& state) {
  std::vector<uint8_t> frame = frame_of(static_cast<size_t>(state.range(0)));
  uint16_t identification = 0;
  for (auto _ : state) {
    wire::change_identification(frame, ++identification % 16);
    benchmark::ClobberMemory();
  }
}

void codec_parse_frame(benchmark::State& state) {
  const std::vector<uint8_t> frame = frame_of(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    auto packet = wire::parse_frame(frame);
    benchmark::DoNotOptimize(packet);
  }
}

BENCHMARK(codec_emit_headers)->Arg(64)->Arg(4096);
BENCHMARK(codec_write_icrc)->Arg(64)->Arg(4096);
BENCHMARK(codec_change_identification)->Arg(64)->Arg(4096);
BENCHMARK(codec_parse_frame)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace rocemu
