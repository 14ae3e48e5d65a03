// Tests ibv_alloc_parent_domain(3) and ibv_alloc_td(3), which are known only to the provider.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/provider/fake_context.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/structs/custom_memory.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {
namespace {

struct Object {
  CustomMemory custom_memory;
  uint64_t value = 5;
};

/// Records the calls of a parent domain's allocator, and determines their results.
struct Allocator {
  ibv_pd* pd = nullptr;
  uint64_t resource = 0;
  int allocated = 0;
  int freed = 0;
  void* answer = nullptr;
};

void* alloc(ibv_pd* pd, void* context, size_t size, size_t alignment, uint64_t resource) {
  auto* allocator = static_cast<Allocator*>(context);
  allocator->pd = pd;
  allocator->resource = resource;
  ++allocator->allocated;
  EXPECT_EQ(size, sizeof(Object));
  EXPECT_EQ(alignment, alignof(Object));
  return allocator->answer;
}

void release_memory(ibv_pd* pd, void* context, void* memory, uint64_t resource) {
  auto* allocator = static_cast<Allocator*>(context);
  EXPECT_EQ(pd, allocator->pd);
  EXPECT_EQ(resource, allocator->resource);
  EXPECT_EQ(memory, allocator->answer);
  ++allocator->freed;
}

class ParentDomain : public testing::Test {
 protected:
  ParentDomain()
      : context_([this](const abi::Request& request, const auto&) {
          ++requests_;
          test::Answer answer;
          if (request.op == abi::Op::kAllocPd) answer.reply.body.object.handle = 17;
          return answer;
        }) {
    pd_ = alloc_pd(context_.get());
    pd_->context = context_.get();  // as libibverbs does
  }
  ~ParentDomain() override { EXPECT_EQ(dealloc_pd(pd_), 0); }

  ibv_pd* make_parent(uint32_t comp_mask = 0, ibv_td* td = nullptr) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd_;
    attr.td = td;
    attr.comp_mask = comp_mask;
    attr.alloc = alloc;
    attr.free = release_memory;
    attr.pd_context = &allocator_;
    return alloc_parent_domain(context_.get(), &attr);
  }

  static constexpr uint32_t kAllocators =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

  std::atomic<int> requests_{0};
  Allocator allocator_;
  FakeContext context_;
  ibv_pd* pd_;
};

TEST_F(ParentDomain, IsTheProtectionDomainItselfForTheDaemon) {
  const int before = requests_;
  ibv_pd* parent = make_parent();
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->handle, pd_->handle);
  EXPECT_EQ(parent->context, context_.get());
  EXPECT_EQ(dealloc_pd(parent), 0);
  EXPECT_EQ(requests_, before) << "it knows nothing of parent domains";
}

TEST_F(ParentDomain, MustEndBeforeItsPartsDo) {
  ibv_td_init_attr init{};
  ibv_td* td = alloc_td(context_.get(), &init);
  ASSERT_NE(td, nullptr);
  ibv_pd* parent = make_parent(0, td);
  ibv_pd* again = make_parent(0, td);
  EXPECT_EQ(dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(dealloc_td(td), EBUSY);
  EXPECT_EQ(dealloc_pd(parent), 0);
  EXPECT_EQ(dealloc_td(td), EBUSY);
  EXPECT_EQ(dealloc_pd(again), 0);
  EXPECT_EQ(dealloc_td(td), 0);
}

TEST_F(ParentDomain, MustOutliveItsObjects) {
  ibv_pd* parent = make_parent();
  hold(parent);
  EXPECT_EQ(dealloc_pd(parent), EBUSY);
  release(parent);
  EXPECT_EQ(dealloc_pd(parent), 0);
}

TEST_F(ParentDomain, OfAnotherParentDomainUsesTheProtectionDomainOfThatOne) {
  ibv_pd* lower = make_parent();
  ibv_parent_domain_init_attr attr{};
  attr.pd = lower;
  ibv_pd* upper = alloc_parent_domain(context_.get(), &attr);
  ASSERT_NE(upper, nullptr);
  EXPECT_EQ(upper->handle, pd_->handle);
  EXPECT_EQ(dealloc_pd(lower), EBUSY);
  EXPECT_EQ(dealloc_pd(upper), 0);
  EXPECT_EQ(dealloc_pd(lower), 0);
}

TEST_F(ParentDomain, RefusesInvalidDomains) {
  ibv_parent_domain_init_attr attr{};
  EXPECT_EQ(alloc_parent_domain(context_.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);  // pd: "reference to a protection domain, can't be NULL"
  attr.pd = pd_;
  attr.comp_mask = 1u << 2;
  EXPECT_EQ(alloc_parent_domain(context_.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attr.alloc = alloc;
  EXPECT_EQ(alloc_parent_domain(context_.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ParentDomain, GetsMemoryFromItsAllocatorAndGivesItBack) {
  alignas(Object) std::byte memory[sizeof(Object)];
  memset(memory, 0xa5, sizeof(memory));
  allocator_.answer = memory;
  ibv_pd* parent = make_parent(kAllocators);
  auto* object = make_in<Object>(parent, Resource::kSrq);
  EXPECT_EQ(static_cast<void*>(object), memory);
  EXPECT_EQ(object->value, 5u);
  EXPECT_EQ(allocator_.pd, parent) << "passed the parent domain pd";
  EXPECT_EQ(allocator_.resource, static_cast<uint64_t>(Resource::kSrq));
  EXPECT_EQ(allocator_.freed, 0);
  dispose_in(object, Resource::kSrq);
  EXPECT_EQ(allocator_.freed, 1);
  EXPECT_EQ(dealloc_pd(parent), 0);
}

// "It may also return IBV_ALLOCATOR_USE_DEFAULT asking the callee to allocate the buffer using the
// default allocator."
TEST_F(ParentDomain, UsesItsOwnMemoryIfTheAllocatorWantsThat) {
  allocator_.answer = IBV_ALLOCATOR_USE_DEFAULT;
  ibv_pd* parent = make_parent(kAllocators);
  auto* object = make_in<Object>(parent, Resource::kQp);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(allocator_.allocated, 1);
  dispose_in(object, Resource::kQp);
  EXPECT_EQ(allocator_.freed, 0) << "only what alloc() allocated";
  EXPECT_EQ(dealloc_pd(parent), 0);
}

// ibv_alloc_parent_domain(3), alloc: "or NULL to designate an error"
TEST_F(ParentDomain, FailsIfTheAllocatorDoes) {
  allocator_.answer = nullptr;
  ibv_pd* parent = make_parent(kAllocators);
  errno = 0;
  EXPECT_EQ(make_in<Object>(parent, Resource::kQp), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(dealloc_pd(parent), 0);
}

TEST_F(ParentDomain, WithoutAllocatorsAllocatesLikeAProtectionDomain) {
  ibv_pd* parent = make_parent(IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT);
  auto* object = make_in<Object>(parent, Resource::kQp);
  ASSERT_NE(object, nullptr);
  dispose_in(object, Resource::kQp);
  EXPECT_EQ(allocator_.allocated, 0);
  EXPECT_EQ(dealloc_pd(parent), 0);
}

}  // namespace
}  // namespace rocemu::provider
