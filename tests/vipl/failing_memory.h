// Makes allocations of the calling thread fail, including those inside the library.
#pragma once

namespace rocemu::vipl_test {

extern thread_local bool allocations_fail;

}  // namespace rocemu::vipl_test
