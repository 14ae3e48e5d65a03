#include "emulator/capture/libpcap.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace rocemu::capture {

#ifdef ROCEMU_LIBPCAP
namespace {

void* load(const char* library) {
  if (void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)) return handle;
  throw std::runtime_error(std::string("libpcap, which reads captures, cannot be loaded: ") +
                           dlerror() + "; install libpcap");
}

template <class Function>
Function function_named(void* handle, const char* name) {
  if (void* const address = dlsym(handle, name)) return reinterpret_cast<Function>(address);
  throw std::runtime_error(std::string(ROCEMU_LIBPCAP) + " has no " + name +
                           "; install libpcap 1.5.1 or later");
}

Libpcap load_functions() {
  void* const handle = load(ROCEMU_LIBPCAP);
#define ROCEMU_FUNCTION(name) function_named<decltype(&::name)>(handle, #name)
  return {.open_offline = ROCEMU_FUNCTION(pcap_open_offline_with_tstamp_precision),
          .close = ROCEMU_FUNCTION(pcap_close),
          .datalink = ROCEMU_FUNCTION(pcap_datalink),
          .datalink_val_to_name = ROCEMU_FUNCTION(pcap_datalink_val_to_name),
          .next_ex = ROCEMU_FUNCTION(pcap_next_ex),
          .geterr = ROCEMU_FUNCTION(pcap_geterr)};
#undef ROCEMU_FUNCTION
}

}  // namespace
#else
namespace {

/// Returns the addresses of the functions in a libpcap that is linked statically into this program.
Libpcap load_functions() {
  return {.open_offline = pcap_open_offline_with_tstamp_precision,
          .close = pcap_close,
          .datalink = pcap_datalink,
          .datalink_val_to_name = pcap_datalink_val_to_name,
          .next_ex = pcap_next_ex,
          .geterr = pcap_geterr};
}

}  // namespace
#endif

const Libpcap& libpcap() {
  static const Libpcap functions = load_functions();
  return functions;
}

}  // namespace rocemu::capture
