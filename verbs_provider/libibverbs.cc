// A replacement for libibverbs with which plugins are linked, so that any machine can build the
// plugins for all private ABIs. It is never loaded. libibverbs.map.in has the versions of these
// symbols.
#define ROCEMU_JOIN(name, number) name##number
#define ROCEMU_NUMBERED(name, number) ROCEMU_JOIN(name, number)

extern "C" {
void ibv_qp_to_qp_ex() {}
void _verbs_init_and_alloc_context() {}
void ROCEMU_NUMBERED(verbs_register_driver_, ROCEMU_PRIVATE_ABI)() {}
void verbs_set_ops() {}
void verbs_uninit_context() {}
}
