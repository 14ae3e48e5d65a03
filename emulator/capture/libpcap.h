// The functions of libpcap that read a file. libpcap is loaded when the first capture is read: it
// needs eight more libraries, and loading them would delay every start of rocemu and rocemud.
#pragma once

#include <pcap/pcap.h>

namespace rocemu::capture {

struct Libpcap {
  decltype(&::pcap_open_offline_with_tstamp_precision) open_offline;
  decltype(&::pcap_close) close;
  decltype(&::pcap_datalink) datalink;
  decltype(&::pcap_datalink_val_to_name) datalink_val_to_name;
  decltype(&::pcap_next_ex) next_ex;
  decltype(&::pcap_geterr) geterr;
};

/// Returns the functions. Throws std::runtime_error, with the name of the library, if it cannot be
/// loaded.
const Libpcap& libpcap();

}  // namespace rocemu::capture
