# Removes what `cmake --install` wrote, by its list, and the directories that are empty then.
#
# usage: cmake -DMANIFEST=build/release/install_manifest.txt -P packaging/uninstall.cmake
# DESTDIR is taken from the environment, as the installation did.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} does not exist: nothing was installed from this build, or it was removed")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file IN LISTS files)
  set(path "$ENV{DESTDIR}${file}")
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    message(STATUS "Removing ${path}")
    file(REMOVE "${path}")
    if(EXISTS "${path}" OR IS_SYMLINK "${path}")
      message(FATAL_ERROR "cannot remove ${path}; who installed it may")
    endif()
  endif()
  # Up to three levels: what others have files in stays.
  foreach(level 1 2 3)
    get_filename_component(path "${path}" DIRECTORY)
    file(GLOB rest LIST_DIRECTORIES TRUE "${path}/*" "${path}/.*")
    if(NOT EXISTS "${path}" OR rest OR IS_SYMLINK "${path}")
      break()
    endif()
    file(REMOVE_RECURSE "${path}")
  endforeach()
endforeach()
file(REMOVE "${MANIFEST}")
