// Tests that a program uses verbs as their manual pages say. With fail_on_misuse(), a test fails if
// the program does not. A test that expects reports calls take_reports().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rocemu/gtest.h>
#include <rocemu/testing.h>

namespace {

using rocemu::testing::Fabric;
using rocemu::testing::Report;
using testing::Field;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Fabric* fabric = nullptr;

TEST(Region, IsGivenUpBeforeItsProtectionDomain) {
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  ibv_pd* pd = ibv_alloc_pd(context);
  static char buffer[4096];
  ibv_mr* region = ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  EXPECT_THAT(fabric->take_reports(), IsEmpty());
  EXPECT_NE(ibv_dealloc_pd(pd), 0);  // fails because the region uses the protection domain
  EXPECT_THAT(fabric->take_reports(),
              UnorderedElementsAre(Field("rule", &Report::rule, "refused-state"),
                                   Field("rule", &Report::rule, "destroy-failed")));
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Fabric nic({.sanitize = rocemu::testing::kDefaultMisuseRules});
  fabric = &nic;
  rocemu::testing::fail_on_misuse(nic);
  return RUN_ALL_TESTS();
}
