# install_pkg_config(NAME.pc.in) writes and installs NAME.pc, which finds the prefix from its own place.
file(RELATIVE_PATH pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")

function(install_pkg_config template)
  string(REGEX REPLACE "\\.in$" "" file ${template})
  configure_file(${template} ${file} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
