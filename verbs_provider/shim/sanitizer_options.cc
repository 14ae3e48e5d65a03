// AddressSanitizer's runtime library refuses to start behind another library that the program did
// not name, since its replacements of malloc() and the like might not be the ones in use. The shim
// replaces none of those, and calls the next one of what it does replace.

/// Called by the runtime before it reads ASAN_OPTIONS, which so has the last word. A program that
/// has this function itself keeps its own: for that one `rocemu run` sets the variable too.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
