// Descriptors of /dev/urandom and /dev/random, which in lockstep return the run's random numbers.
#pragma once

#include <cstddef>

namespace rocemu::turns {

/// Fills the bytes with the run's random numbers. Returns false if the calling thread is not in
/// lockstep.
bool fill_randomly(void* data, size_t size);

bool is_random_file(int fd);
void forget_random_file(int fd);

}  // namespace rocemu::turns
