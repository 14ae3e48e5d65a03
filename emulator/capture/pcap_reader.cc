#include "emulator/capture/pcap_reader.h"

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "emulator/capture/libpcap.h"

namespace rocemu::capture {
namespace {

/// Returns the IP packet in the frame, without the headers of the link layer.
std::span<const uint8_t> ip_of(int link_type, std::span<const uint8_t> bytes) {
  const auto skip = [&](size_t count) {
    return count < bytes.size() ? bytes.subspan(count) : std::span<const uint8_t>();
  };
  switch (link_type) {
    case DLT_EN10MB: {
      size_t type_at = 12;
      while (type_at + 2 <= bytes.size()) {
        const unsigned type = bytes[type_at] * 256u + bytes[type_at + 1];
        const bool is_vlan = type == 0x8100 || type == 0x88a8 || type == 0x9100;
        if (is_vlan) {
          type_at += 4;
        } else {
          return type == 0x0800 || type == 0x86dd ? skip(type_at + 2) : std::span<const uint8_t>();
        }
      }
      return {};
    }
    case DLT_LINUX_SLL:
      return skip(16);
    case DLT_LINUX_SLL2:
      return skip(20);
    case DLT_NULL:
    case DLT_LOOP:
      return skip(4);
    default:
      return bytes;  // DLT_RAW, DLT_IPV4, DLT_IPV6
  }
}

}  // namespace

std::string read_pcap(const std::string& path,
                      const std::function<void(const CapturedPacket&)>& take) {
  const Libpcap& library = libpcap();
  char error[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> pcap(
      library.open_offline(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error), library.close);
  if (pcap == nullptr) {
    std::error_code ignored;
    const bool is_empty = std::filesystem::file_size(path, ignored) == 0 && !ignored;
    throw std::runtime_error("cannot read " + path + ": " +
                             (is_empty ? "the file is empty" : std::string(error)));
  }
  const int link_type = library.datalink(pcap.get());
  constexpr int kKnown[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_NULL,
                            DLT_LOOP,   DLT_RAW,       DLT_IPV4,       DLT_IPV6};
  bool is_known = false;
  for (const int known : kKnown) is_known |= known == link_type;
  if (!is_known) {
    const char* name = library.datalink_val_to_name(link_type);
    throw std::runtime_error(path + ": the capture has link type " +
                             (name != nullptr ? name : std::to_string(link_type)) +
                             ", which carries no RoCEv2; capture at the Ethernet interface");
  }
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int result = 0;
  while ((result = library.next_ex(pcap.get(), &header, &bytes)) == 1) {
    const std::span<const uint8_t> all(bytes, header->caplen);
    take({.at = std::chrono::seconds(header->ts.tv_sec) +
                std::chrono::nanoseconds(header->ts.tv_usec),
          .bytes = all,
          .ip = ip_of(link_type, all),
          .size = header->len});
  }
  return result == PCAP_ERROR ? path + ": " + library.geterr(pcap.get()) : "";
}

}  // namespace rocemu::capture
