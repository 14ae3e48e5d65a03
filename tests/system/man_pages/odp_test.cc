// Tests on-demand paging: ibv_reg_mr(3), ibv_advise_mr(3) and ibv_query_device_ex(3).
#include <sys/mman.h>

#include "tests/support/page_size.h"
#include "tests/system/map_pages.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr unsigned kOnDemand = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;

/// Mapped pages that were not accessed yet.
class Pages {
 public:
  explicit Pages(size_t size) : size_(size), data_(map_pages(size)) {}
  ~Pages() { unmap_from(0); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Unmaps the pages from `offset` on.
  void unmap_from(size_t offset) {
    if (offset < size_) munmap(data_ + offset, size_ - offset);
    size_ = offset;
  }

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  uint8_t* data_;
};

class OnDemand : public ConnectedTest {
 protected:
  MrPtr register_on_demand(const Pages& pages, unsigned access = kOnDemand) {
    MrPtr registered(ibv_reg_mr(pd.get(), pages.data(), pages.size(), access));
    EXPECT_NE(registered, nullptr) << std::strerror(errno);
    return registered;
  }

  static ibv_sge within(const Pages& pages, size_t offset, uint32_t length, const MrPtr& mr) {
    return {reinterpret_cast<uint64_t>(pages.data() + offset), length, mr->lkey};
  }

  int send(ibv_sge entry) {
    ibv_send_wr wr{};
    wr.sg_list = &entry;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(sender.get(), &wr, &bad);
  }
  int receive(ibv_sge entry) {
    ibv_recv_wr wr{};
    wr.sg_list = &entry;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(receiver.get(), &wr, &bad);
  }

  int advise(std::vector<ibv_sge> list,
             ibv_advise_mr_advice advice = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
             uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH) {
    return ibv_advise_mr(pd.get(), advice, flags, list.data(), static_cast<uint32_t>(list.size()));
  }
};

// ibv_query_device_ex(3): "On demand paging is supported", "Implicit on demand paging is
// supported".
TEST_F(OnDemand, TheDeviceOffersIt) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.odp_caps.general_caps, uint64_t{IBV_ODP_SUPPORT} | IBV_ODP_SUPPORT_IMPLICIT);
  constexpr uint32_t kRc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                           IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  constexpr uint32_t kFlush = 1 << 6, kAtomicWrite = 1 << 7;  // IB_UVERBS_ODP_SUPPORT_...
  constexpr uint32_t kWithQueries = kRc | kFlush | kAtomicWrite;
  EXPECT_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps & kWithQueries, kWithQueries);
  // The other transports have neither FLUSH nor ATOMIC WRITE.
  EXPECT_EQ(attr.xrc_odp_caps & (kFlush | kAtomicWrite), 0u);
  EXPECT_EQ(attr.odp_caps.per_transport_caps.uc_odp_caps & (kFlush | kAtomicWrite), 0u);
  EXPECT_EQ(attr.odp_caps.per_transport_caps.ud_odp_caps & (kFlush | kAtomicWrite), 0u);
}

// "Create an on-demand paging MR": pages need not exist before they are accessed.
TEST_F(OnDemand, PagesNeedNotBeThereWhenTheyAreRegistered) {
  const Pages from(4 * 4096), to(4 * 4096);
  const MrPtr from_mr = register_on_demand(from), to_mr = register_on_demand(to);
  from.data()[5000] = 42;
  ASSERT_EQ(receive(within(to, 0, 8192, to_mr)), 0);
  ASSERT_EQ(send(within(from, 0, 8192, from_mr)), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).byte_len, 8192u);
  EXPECT_EQ(to.data()[5000], 42);
}

// After the registration, other pages may be mapped in place of the old ones.
TEST_F(OnDemand, FollowsTheMapping) {
  const Pages from(4096);
  const MrPtr from_mr = register_on_demand(from);
  from.data()[0] = 1;
  ASSERT_EQ(mmap(from.data(), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0),
            from.data());
  from.data()[0] = 2;
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  ASSERT_EQ(send(within(from, 0, 1, from_mr)), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(slot(1)[0], 2);
}

// "To create an implicit ODP MR, IBV_ACCESS_ON_DEMAND should be set, addr should be 0 and length
// should be SIZE_MAX."
TEST_F(OnDemand, ImplicitlyAllMemoryIsRegistered) {
  const MrPtr everything(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, kOnDemand));
  ASSERT_NE(everything, nullptr) << std::strerror(errno);
  const Pages from(4096), to(4096);  // mapped after the registration
  from.data()[7] = 42;
  ASSERT_EQ(receive(within(to, 0, 4096, everything)), 0);
  ASSERT_EQ(send(within(from, 0, 4096, everything)), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(to.data()[7], 42);
}

TEST_F(OnDemand, AllMemoryWithoutItIsRefused) {
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_NE(errno, 0);
}

// IBV_ACCESS_HUGETLB is "applicable with IBV_ACCESS_ON_DEMAND in explicit mode only"
TEST_F(OnDemand, ImplicitHugePagesAreRefused) {
  EXPECT_EQ(ibv_reg_mr(pd.get(), nullptr, SIZE_MAX, kOnDemand | IBV_ACCESS_HUGETLB), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// An access to memory that is not mapped is a protection error.
TEST_F(OnDemand, MemoryThatIsGoneIsAProtectionError) {
  Pages from(4096);
  const MrPtr from_mr = register_on_demand(from);
  from.unmap_from(0);
  ASSERT_EQ(send(within(from, 0, 1, from_mr)), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_LOC_PROT_ERR);
}

// ---- ibv_advise_mr(3) -----------------------------------------------------------------------

// "returns 0 when the call was successful"
TEST_F(OnDemand, PrefetchingWorksWithAllAdvice) {
  const Pages pages(4 * 4096);
  const MrPtr region = register_on_demand(pages);
  for (const ibv_advise_mr_advice advice :
       {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
        IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT}) {
    EXPECT_EQ(advise({within(pages, 100, 9000, region)}, advice), 0);
    EXPECT_EQ(advise({within(pages, 100, 9000, region)}, advice, 0), 0);
  }
}

// "num_sge: Number of elements in the s/g array": the page names no limit.
TEST_F(OnDemand, AdviceCanHaveALongList) {
  const Pages pages(4096);
  const MrPtr region = register_on_demand(pages);
  std::vector<ibv_sge> list(100, within(pages, 0, 16, region));
  EXPECT_EQ(advise(list), 0);
  list.back().lkey ^= 1;
  EXPECT_NE(advise(list), 0) << "and are looked at to the end";
}

// "EFAULT ... When the range requested is out of the MR bounds, or when parts of it are not part of
// the process address space."
TEST_F(OnDemand, AdviceBeyondTheRegionIsAFault) {
  const auto page = static_cast<uint32_t>(kPageSize);
  Pages pages(2 * kPageSize);
  const MrPtr region = register_on_demand(pages);
  EXPECT_EQ(advise({within(pages, page, page + 1, region)}), EFAULT);
  pages.unmap_from(page);
  EXPECT_EQ(advise({within(pages, page, 8, region)}), EFAULT);
}

// "EINVAL ... The flags are invalid."
TEST_F(OnDemand, UnknownFlagsOrNoListAreInvalid) {
  const Pages pages(4096);
  const MrPtr region = register_on_demand(pages);
  EXPECT_EQ(advise({within(pages, 0, 8, region)}, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 7), EINVAL);
  EXPECT_EQ(advise({}), EINVAL);
}

// "all the lkeys ... must be associated with ODP MRs"
TEST_F(OnDemand, AdviceOnAnOrdinaryRegionIsInvalid) {
  EXPECT_EQ(advise({sge(0, 8)}), EINVAL);
}

// "ENOTSUP: The advise operation isn't supported."
TEST_F(OnDemand, UnknownAdviceIsNotSupported) {
  const Pages pages(4096);
  const MrPtr region = register_on_demand(pages);
  EXPECT_EQ(advise({within(pages, 0, 8, region)}, static_cast<ibv_advise_mr_advice>(3)), ENOTSUP);
}

// "EPERM ... Referencing a valid lkey outside the caller's security scope. The advice is
// IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE but the specified MR ... is not registered as writable".
TEST_F(OnDemand, AdviceWithoutThePermissionIsRefused) {
  const Pages pages(4096);
  const MrPtr read_only = register_on_demand(pages, IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(advise({within(pages, 0, 8, read_only)}), EPERM);
  EXPECT_EQ(advise({within(pages, 0, 8, read_only)}, IBV_ADVISE_MR_ADVICE_PREFETCH), 0);
  const PdPtr other(ibv_alloc_pd(context.get()));
  const MrPtr foreign(ibv_reg_mr(other.get(), pages.data(), pages.size(), kOnDemand));
  EXPECT_EQ(advise({within(pages, 0, 8, foreign)}), EPERM);
}

}  // namespace
}  // namespace rocemu::system_test
