// with_plugin FILE: calls use_verbs() of a plugin that is loaded with RTLD_LOCAL, and returns its
// result.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "which plugin?");
    return 2;
  }
  int (*const use_verbs)(void) = (int (*)(void))dlsym(plugin, "use_verbs");
  return use_verbs();
}
