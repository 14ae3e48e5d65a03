# ROCEMU_PORTABLE: programs that run with any glibc from 2.34 on and need no other package (docs/install.md).
#
# The libraries they use are found here first, in a static form; what find_package() and
# pkg_check_modules() then find below are these. A distribution that gives no static ISA-L gives the
# shared one, which is installed beside the plugins.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(Boost_USE_STATIC_LIBS ON)

# fmt and spdlog are used as headers.
foreach(name fmt::fmt fmt::fmt-header-only)
  add_library(${name} INTERFACE IMPORTED)
  set_target_properties(${name} PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endforeach()
foreach(name spdlog::spdlog spdlog::spdlog_header_only)
  add_library(${name} INTERFACE IMPORTED)
  set_target_properties(${name} PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "SPDLOG_FMT_EXTERNAL;FMT_HEADER_ONLY=1"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endforeach()

find_library(ROCEMU_STATIC_YAML libyaml-cpp.a REQUIRED)
add_library(yaml-cpp STATIC IMPORTED)
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${ROCEMU_STATIC_YAML})

# libpcap can also capture what passes over D-Bus. Only files are written here, so nobody calls these.
find_library(ROCEMU_STATIC_PCAP libpcap.a REQUIRED)
execute_process(COMMAND ${CMAKE_NM} ${ROCEMU_STATIC_PCAP}
  OUTPUT_VARIABLE names ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "U (dbus|ibv|nl|nla|genl|genlmsg|nlmsg)_[A-Za-z0-9_]+" symbols "${names}")
string(REGEX MATCHALL "T [A-Za-z0-9_]+" defined "${names}")
list(TRANSFORM symbols REPLACE "^U " "")
list(TRANSFORM defined REPLACE "^T " "")
list(REMOVE_DUPLICATES symbols)
list(REMOVE_ITEM symbols ${defined})
set(stubs "#include <cstdlib>\n")
foreach(symbol IN LISTS symbols)
  string(APPEND stubs "extern \"C\" void ${symbol}() { std::abort(); }\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/no_live_capture.cc CONTENT "${stubs}")
add_library(rocemu_no_live_capture STATIC ${PROJECT_BINARY_DIR}/no_live_capture.cc)
add_library(PkgConfig::PCAP STATIC IMPORTED)
set_target_properties(PkgConfig::PCAP PROPERTIES
  IMPORTED_LOCATION ${ROCEMU_STATIC_PCAP} INTERFACE_LINK_LIBRARIES rocemu_no_live_capture)

# libgcc_s stays shared: every machine has it, and that of this machine would want its glibc.
# What nobody calls of libstdc++ goes: its random_device wants glibc 2.36.
add_link_options(-static-libstdc++ -Wl,--exclude-libs,ALL -Wl,--gc-sections)

find_library(ROCEMU_STATIC_ISAL libisal.a)
add_library(PkgConfig::ISAL UNKNOWN IMPORTED)
if(ROCEMU_STATIC_ISAL)
  set_target_properties(PkgConfig::ISAL PROPERTIES IMPORTED_LOCATION ${ROCEMU_STATIC_ISAL})
else()
  find_library(ROCEMU_SHARED_ISAL isal REQUIRED)
  set_target_properties(PkgConfig::ISAL PROPERTIES IMPORTED_LOCATION ${ROCEMU_SHARED_ISAL})
  file(REAL_PATH ${ROCEMU_SHARED_ISAL} real_isal)
  install(FILES ${real_isal} DESTINATION ${ROCEMU_PLUGIN_DIR} RENAME libisal.so.2)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${ROCEMU_PLUGIN_DIR}")
endif()
