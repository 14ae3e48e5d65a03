# Builds with musl on Debian: with the compilers and libraries that scripts/check-musl makes, in its chroot.
#
# Not across: programs of musl run beside those of glibc, if the package musl is there.
set(musl /musl)
set(CMAKE_C_COMPILER ${musl}/bin/musl-gcc)
set(CMAKE_CXX_COMPILER ${musl}/bin/musl-g++)

# Not this machine's libraries.
set(CMAKE_FIND_ROOT_PATH ${musl}/usr)
foreach(kind INCLUDE LIBRARY PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} ${musl}/usr/lib/pkgconfig)
