# Builds for arm64 on another machine: with Debian's crossbuild-essential-arm64, and the libraries' arm64
# packages beside or in the place of this machine's (scripts/check-arm64 has a chroot with them).
#
# The preset arm64 has it; `cmake --toolchain packaging/arm64.cmake` takes it by itself.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Not this machine's libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# GoogleTest lists its tests when they are built, manual pages are made of --help.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/run_arm64)
