// Replaces functions that take a path, such as access(2) and fopen(3): they get the path of the
// daemon's file instead. Calls of these functions inside glibc are not intercepted, so each
// function that programs use must be replaced itself.
#include <cstdio>

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/served_paths.h"

namespace rocemu::shim {
namespace {

using Filter = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);

Next<DIR*(const char*)> next_opendir("opendir");
Next<int(const char*, dirent***, Filter, Compare)> next_scandir("scandir");
Next<FILE*(const char*, const char*)> next_fopen("fopen");
Next<int(const char*, int)> next_access("access");
Next<int(const char*, int)> next_eaccess("eaccess");
Next<int(int, const char*, int, int)> next_faccessat("faccessat");
Next<ssize_t(const char*, char*, size_t)> next_readlink("readlink");
Next<ssize_t(int, const char*, char*, size_t)> next_readlinkat("readlinkat");
Next<ssize_t(const char*, char*, size_t, size_t)> next_readlink_chk("__readlink_chk");
Next<ssize_t(int, const char*, char*, size_t, size_t)> next_readlinkat_chk("__readlinkat_chk");
Next<int(const char*)> next_chdir("chdir");
Next<ssize_t(const char*, const char*, void*, size_t)> next_getxattr("getxattr");
Next<ssize_t(const char*, const char*, void*, size_t)> next_lgetxattr("lgetxattr");

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(DIR*, opendir, (const char* path)) {
  return use_path(AT_FDCWD, path, [](const char* name) { return next_opendir(name); });
}

ROCEMU_REPLACE(int, scandir,
               (const char* path, dirent*** entries, Filter filter, Compare compare)) {
  return use_path(AT_FDCWD, path,
                  [=](const char* name) { return next_scandir(name, entries, filter, compare); });
}
ROCEMU_REPLACE_ALIAS(scandir64, scandir);

ROCEMU_REPLACE(FILE*, fopen, (const char* path, const char* mode)) {
  return use_path(AT_FDCWD, path, [=](const char* name) { return next_fopen(name, mode); });
}
ROCEMU_REPLACE_ALIAS(fopen64, fopen);

ROCEMU_REPLACE(int, access, (const char* path, int mode)) {
  return query_path(AT_FDCWD, path, [=](const char* name) { return next_access(name, mode); });
}

ROCEMU_REPLACE(int, eaccess, (const char* path, int mode)) {
  return query_path(AT_FDCWD, path, [=](const char* name) { return next_eaccess(name, mode); });
}
ROCEMU_REPLACE_ALIAS(euidaccess, eaccess);

ROCEMU_REPLACE(int, faccessat, (int dirfd, const char* path, int mode, int flags)) {
  return query_path(dirfd, path,
                    [=](const char* name) { return next_faccessat(dirfd, name, mode, flags); });
}

ROCEMU_REPLACE(ssize_t, readlink, (const char* path, char* out, size_t size)) {
  return query_path(AT_FDCWD, path,
                    [=](const char* name) { return next_readlink(name, out, size); });
}

ROCEMU_REPLACE(ssize_t, readlinkat, (int dirfd, const char* path, char* out, size_t size)) {
  return query_path(dirfd, path,
                    [=](const char* name) { return next_readlinkat(dirfd, name, out, size); });
}

ROCEMU_REPLACE(ssize_t, __readlink_chk, (const char* path, char* out, size_t size, size_t room)) {
  return query_path(AT_FDCWD, path,
                    [=](const char* name) { return next_readlink_chk(name, out, size, room); });
}

ROCEMU_REPLACE(ssize_t, __readlinkat_chk,
               (int dirfd, const char* path, char* out, size_t size, size_t room)) {
  return query_path(dirfd, path, [=](const char* name) {
    return next_readlinkat_chk(dirfd, name, out, size, room);
  });
}

ROCEMU_REPLACE(int, chdir, (const char* path)) {
  return use_path(AT_FDCWD, path, [](const char* name) { return next_chdir(name); });
}

// getxattr(2) is replaced because `ls -l` queries access control lists by it.
ROCEMU_REPLACE(ssize_t, getxattr,
               (const char* path, const char* attribute, void* out, size_t size)) {
  return query_path(AT_FDCWD, path,
                    [=](const char* name) { return next_getxattr(name, attribute, out, size); });
}

ROCEMU_REPLACE(ssize_t, lgetxattr,
               (const char* path, const char* attribute, void* out, size_t size)) {
  return query_path(AT_FDCWD, path,
                    [=](const char* name) { return next_lgetxattr(name, attribute, out, size); });
}
