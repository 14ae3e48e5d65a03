// Prints the names of the devices. This program is linked with librocemu.so, so it needs no
// LD_PRELOAD.
#include <infiniband/verbs.h>

#include <cstdio>

int main() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    ibv_context* context = ibv_open_device(list[i]);
    if (context == nullptr) return 1;
    std::printf("%s\n", ibv_get_device_name(list[i]));
    ibv_close_device(context);
  }
  if (list != nullptr) ibv_free_device_list(list);
  return count == 0 ? 1 : 0;
}
