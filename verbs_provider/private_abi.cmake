# Which private ABI the installed libibverbs speaks with its providers.
#
# Sets ROCEMU_LIBIBVERBS (the library to link) and ROCEMU_PRIVATE_ABI (the number in the provider's
# file name). A new one needs its entries in private_abi.h, then its number here:
#   57  rdma-core 57 to 59: the layout of 34
#   59  rdma-core 60 to 63: more operations in 60 and again in 62, so look at the package's version
#   64  rdma-core 64: alloc_buf, free_buf
#   65  rdma-core 65: completion counters
set(ROCEMU_KNOWN_PRIVATE_ABIS 34)

function(rocemu_find_private_abi)
  find_library(ROCEMU_LIBIBVERBS ibverbs REQUIRED)
  execute_process(
    COMMAND ${CMAKE_READELF} -W --dyn-syms ${ROCEMU_LIBIBVERBS}
    OUTPUT_VARIABLE symbols ERROR_QUIET)
  if(NOT symbols MATCHES "verbs_register_driver_([0-9]+)@@IBVERBS_PRIVATE_")
    message(FATAL_ERROR
      "${ROCEMU_LIBIBVERBS} does not export verbs_register_driver_N@IBVERBS_PRIVATE_N: "
      "is it rdma-core's libibverbs, as a shared library?")
  endif()
  set(abi ${CMAKE_MATCH_1})
  if(NOT abi IN_LIST ROCEMU_KNOWN_PRIVATE_ABIS)
    message(FATAL_ERROR
      "${ROCEMU_LIBIBVERBS} has the private provider ABI ${abi}; supported: "
      "${ROCEMU_KNOWN_PRIVATE_ABIS} (34 is rdma-core 34 to 56). "
      "See verbs_provider/private_abi.cmake.")
  endif()
  set(ROCEMU_PRIVATE_ABI ${abi} PARENT_SCOPE)
endfunction()
