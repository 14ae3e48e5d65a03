// Tests ibv_alloc_parent_domain(3) and ibv_alloc_td(3), sentence by sentence.
#include <cstdlib>
#include <set>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

using TdPtr = std::unique_ptr<ibv_td, Destroyer<ibv_td, ibv_dealloc_td>>;
using CqExPtr = std::unique_ptr<ibv_cq_ex, decltype([](ibv_cq_ex* cq) {
                                  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
                                })>;

/// A custom allocator, which records the calls that request memory.
struct Allocator {
  static void* alloc(ibv_pd* pd, void* context, size_t size, size_t alignment, uint64_t type) {
    auto* self = static_cast<Allocator*>(context);
    self->pd = pd;
    self->types.insert(type);
    if (self->fails) return nullptr;
    if (self->uses_default) return IBV_ALLOCATOR_USE_DEFAULT;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, size) != 0) return nullptr;
    std::memset(memory, 0, size);
    self->live.insert(memory);
    ++self->allocated;
    return memory;
  }
  static void free(ibv_pd* pd, void* context, void* memory, uint64_t type) {
    auto* self = static_cast<Allocator*>(context);
    EXPECT_EQ(pd, self->pd);
    EXPECT_TRUE(self->types.contains(type));
    EXPECT_EQ(self->live.erase(memory), 1u) << "not what alloc() returned";
    ::free(memory);
  }

  ibv_pd* pd = nullptr;
  std::set<uint64_t> types;
  std::set<void*> live;
  int allocated = 0;
  bool fails = false;
  bool uses_default = false;
};

class ParentDomain : public VerbsTest {
 protected:
  ibv_parent_domain_init_attr attributes(ibv_td* td = nullptr) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd.get();
    attr.td = td;
    return attr;
  }
  PdPtr make(ibv_parent_domain_init_attr attr) {
    PdPtr parent(ibv_alloc_parent_domain(context.get(), &attr));
    EXPECT_NE(parent, nullptr) << std::strerror(errno);
    return parent;
  }
  int error_of(ibv_parent_domain_init_attr attr) {
    errno = 0;
    const PdPtr parent(ibv_alloc_parent_domain(context.get(), &attr));
    return parent == nullptr ? errno : 0;
  }
  PdPtr make_with_allocator() {
    ibv_parent_domain_init_attr attr = attributes();
    attr.comp_mask =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    attr.alloc = Allocator::alloc;
    attr.free = Allocator::free;
    attr.pd_context = &allocator;
    return make(attr);
  }

  TdPtr make_td() {
    ibv_td_init_attr attr{};
    TdPtr td(ibv_alloc_td(context.get(), &attr));
    EXPECT_NE(td, nullptr) << std::strerror(errno);
    return td;
  }

  CqExPtr make_cq_of(const PdPtr& parent) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attr.parent_domain = parent.get();
    return CqExPtr(ibv_create_cq_ex(context.get(), &attr));
  }

  /// Creates a QP like the fixture's create_qp(), but with a parent domain.
  QpPtr create_qp_of(const PdPtr& parent, ibv_cq* cq) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = kQueueDepth,
                .max_recv_wr = kQueueDepth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    return QpPtr(ibv_create_qp(parent.get(), &init));
  }

  Allocator allocator;
};

// "A parent domain is completely interchangeable with the struct ibv_pd used to create it": a QP of
// the parent domain can use regions of the protection domain.
TEST_F(ParentDomain, IsInterchangeableWithItsProtectionDomain) {
  const PdPtr parent = make(attributes());
  const CqPtr cq = create_cq(), other_cq = create_cq();
  const QpPtr sender = create_qp_of(parent, other_cq.get());
  const QpPtr receiver = create_qp(cq.get(), cq.get());
  ASSERT_TRUE(sender && receiver);
  EXPECT_EQ(sender->pd, parent.get());
  ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(post_send(sender.get(), 2), 0);  // the L_Key is that of the protection domain's region
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
}

// "and can be used as an input argument to any function accepting a struct ibv_pd"
TEST_F(ParentDomain, WorksWithEveryVerb) {
  const PdPtr parent = make(attributes());
  const MrPtr region(ibv_reg_mr(parent.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->pd, parent.get());
  const MrPtr null(ibv_alloc_null_mr(parent.get()));
  EXPECT_NE(null, nullptr);
  ibv_ah_attr ah_attr{};
  ah_attr.is_global = 1;
  ah_attr.port_num = 1;
  ah_attr.grh.hop_limit = 64;
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &ah_attr.grh.dgid), 0);
  const AhPtr ah(ibv_create_ah(parent.get(), &ah_attr));
  EXPECT_NE(ah, nullptr);
  ibv_parent_domain_init_attr upper = attributes();
  upper.pd = parent.get();
  EXPECT_EQ(error_of(upper), 0);
}

// "All resources created with the parent domain should be destroyed prior to deallocating the
// parent domain."
TEST_F(ParentDomain, CannotBeDeallocatedBeforeItsResources) {
  const PdPtr parent = make(attributes());
  MrPtr region(ibv_reg_mr(parent.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(ibv_dealloc_pd(parent.get()), EBUSY);
  region.reset();
  CqExPtr cq = make_cq_of(parent);
  EXPECT_EQ(ibv_dealloc_pd(parent.get()), EBUSY);
  cq.reset();
  const CqPtr plain = create_cq();
  QpPtr qp = create_qp_of(parent, plain.get());
  EXPECT_EQ(ibv_dealloc_pd(parent.get()), EBUSY);
  qp.reset();
}

// A region that moves to a parent domain becomes its resource. After it moved away, it is its
// resource no longer.
TEST_F(ParentDomain, ReregistrationMovesAResource) {
  const PdPtr parent = make(attributes());
  const MrPtr region(ibv_reg_mr(pd.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_EQ(ibv_rereg_mr(region.get(), IBV_REREG_MR_CHANGE_PD, parent.get(), nullptr, 0, 0), 0);
  EXPECT_EQ(region->pd, parent.get());
  EXPECT_EQ(ibv_dealloc_pd(parent.get()), EBUSY);
  ASSERT_EQ(ibv_rereg_mr(region.get(), IBV_REREG_MR_CHANGE_PD, pd.get(), nullptr, 0, 0), 0);
}

// "pd: Reference to the protection domain that this parent domain uses."
TEST_F(ParentDomain, HoldsItsProtectionDomain) {
  PdPtr lower(ibv_alloc_pd(context.get()));
  ibv_parent_domain_init_attr attr = attributes();
  attr.pd = lower.get();
  PdPtr parent = make(attr);
  EXPECT_EQ(ibv_dealloc_pd(lower.get()), EBUSY);
  parent.reset();
}

// "reference to a protection domain, can't be NULL"; "or NULL if the request fails (and sets errno
// to indicate the failure reason)".
TEST_F(ParentDomain, BadAttributesAreRefused) {
  ibv_parent_domain_init_attr attr{};
  EXPECT_EQ(error_of(attr), EINVAL);
  attr = attributes();
  attr.comp_mask = 1u << 9;
  EXPECT_EQ(error_of(attr), EOPNOTSUPP);
  attr = attributes();
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attr.alloc = Allocator::alloc;
  EXPECT_EQ(error_of(attr), EINVAL) << "nothing to free it with";
  const ContextPtr other_context = open_device();
  const PdPtr foreign(ibv_alloc_pd(other_context.get()));
  attr = attributes();
  attr.pd = foreign.get();
  EXPECT_EQ(error_of(attr), EINVAL);
}

// "alloc: Custom memory allocation function for this parent domain." "free: Callback to free memory
// buffers that were allocated using a successful alloc()."
TEST_F(ParentDomain, TakesMemoryForItsQueuesFromTheAllocator) {
  const PdPtr parent = make_with_allocator();
  CqExPtr cq = make_cq_of(parent);
  ASSERT_NE(cq, nullptr) << std::strerror(errno);
  EXPECT_EQ(allocator.allocated, 1);
  EXPECT_EQ(allocator.pd, parent.get()) << "passed the parent domain pd";
  ibv_cq* plain = ibv_cq_ex_to_cq(cq.get());
  QpPtr sender = create_qp_of(parent, plain), receiver = create_qp_of(parent, plain);
  ASSERT_TRUE(sender && receiver);
  EXPECT_EQ(allocator.allocated, 3);
  EXPECT_EQ(allocator.types.size(), 2u) << "one resource code each";
  ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(post_send(sender.get(), 2), 0);
  for (const ibv_wc& wc : poll_for(plain, 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  sender.reset();
  receiver.reset();
  EXPECT_EQ(allocator.live.size(), 1u);
  cq.reset();
  EXPECT_TRUE(allocator.live.empty());
}

// "It may also return IBV_ALLOCATOR_USE_DEFAULT asking the callee to allocate the buffer using the
// default allocator."
TEST_F(ParentDomain, AllocatesItselfIfTheAllocatorSaysSo) {
  allocator.uses_default = true;
  const PdPtr parent = make_with_allocator();
  const CqExPtr cq = make_cq_of(parent);
  EXPECT_NE(cq, nullptr);
  EXPECT_EQ(allocator.types.size(), 1u) << "it was asked";
}

// "or NULL to designate an error"
TEST_F(ParentDomain, FailsIfTheAllocatorDoes) {
  const PdPtr parent = make_with_allocator();
  const CqPtr plain = create_cq();
  allocator.fails = true;
  EXPECT_EQ(make_cq_of(parent), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(create_qp_of(parent, plain.get()), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  allocator.fails = false;
  EXPECT_NE(make_cq_of(parent), nullptr);
}

// If an object cannot be created, the memory that was allocated for it is freed.
TEST_F(ParentDomain, FreesTheMemoryOfAFailure) {
  const PdPtr parent = make_with_allocator();
  ibv_cq_init_attr_ex attr{};
  attr.cqe = UINT32_MAX;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = parent.get();
  EXPECT_EQ(ibv_create_cq_ex(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(allocator.allocated, 1);
  EXPECT_TRUE(allocator.live.empty());
}

// ---- ibv_alloc_td(3) ------------------------------------------------------------------------

// "A struct ibv_td can be added to a parent domain via ibv_alloc_parent_domain() and then the
// parent domain can be used to create verbs objects."
TEST_F(ParentDomain, WithAThreadDomainMakesObjectsThatWork) {
  const TdPtr td = make_td();
  EXPECT_EQ(td->context, context.get());
  const PdPtr parent = make(attributes(td.get()));
  const CqExPtr cq = make_cq_of(parent);
  ibv_cq* plain = ibv_cq_ex_to_cq(cq.get());
  const QpPtr sender = create_qp_of(parent, plain), receiver = create_qp_of(parent, plain);
  ASSERT_TRUE(sender && receiver);
  ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(post_send(sender.get(), 2), 0);
  EXPECT_EQ(poll_for(plain, 2).size(), 2u);
}

// "All resources created with the td should be destroyed prior to deallocating the td." "returns 0
// on success, or the value of errno on failure".
TEST_F(ParentDomain, HoldsItsThreadDomain) {
  const TdPtr td = make_td();
  PdPtr parent = make(attributes(td.get()));
  EXPECT_EQ(ibv_dealloc_td(td.get()), EBUSY);
  parent.reset();
}

TEST_F(ParentDomain, AThreadDomainOfAnUnknownKindIsRefused) {
  ibv_td_init_attr attr{.comp_mask = 1};
  EXPECT_EQ(ibv_alloc_td(context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace rocemu::system_test
