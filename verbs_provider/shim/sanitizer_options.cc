// AddressSanitizer's runtime library refuses to start if a library that the program does not link,
// such as this one, was loaded before it: its replacements of malloc() and similar functions might
// not be the ones in use. The shim replaces none of these functions, and its replacements call the
// next library's functions.

/// Returns the default options. The runtime calls this function before it reads ASAN_OPTIONS, which
/// takes precedence. A program that defines this function itself keeps its own; for such programs
/// `rocemu run` sets the variable, too.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
