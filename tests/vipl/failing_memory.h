// Makes allocations fail, including those that the library makes for the calling thread.
#pragma once

namespace rocemu::vipl_test {

extern thread_local bool allocations_fail;

}  // namespace rocemu::vipl_test
