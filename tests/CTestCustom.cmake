# ctest reads this before it runs anything: tests/CMakeLists.txt puts it where ctest looks.
#
# Each daemon makes more than a hundred small files, and there are hundreds of daemons. So all that the
# tests make is in memory, as $XDG_RUNTIME_DIR is where people are logged in, if there is enough.
set(available 0)
if(IS_DIRECTORY /dev/shm)
  execute_process(COMMAND df --output=avail /dev/shm OUTPUT_VARIABLE blocks ERROR_QUIET)
  string(REGEX MATCH "[0-9]+" available "${blocks}")
endif()
if(available GREATER 1000000)  # KiB
  string(RANDOM LENGTH 8 name)
  set(directory /dev/shm/rocemu-tests-${name})
  set(ENV{XDG_RUNTIME_DIR} ${directory})
  set(ENV{TMPDIR} ${directory})
  set(CTEST_CUSTOM_PRE_TEST "mkdir -m 755 ${directory}")
  set(CTEST_CUSTOM_POST_TEST "rm -rf ${directory}")
endif()
