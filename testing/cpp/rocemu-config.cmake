# find_package(rocemu): the target rocemu::testing.
include(${CMAKE_CURRENT_LIST_DIR}/rocemu-targets.cmake)
