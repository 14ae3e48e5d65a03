execute_process(COMMAND ${READELF} -W -d ${LIBRARY}
  OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" needed "${dynamic}")
if(NOT needed MATCHES "^\\(NEEDED\\) +Shared library: \\[libc\\.so\\.6\\]$")
  message(FATAL_ERROR "${LIBRARY} needs: ${needed}")
endif()
