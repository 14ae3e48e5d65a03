// Standard input, output and error of a process that was started with some of them closed
#pragma once

namespace rocemu {

/// Occupies the closed ones of the descriptors 0, 1 and 2, so that files that this process opens do
/// not get these numbers. Reading the new standard input and writing to the new standard output or
/// error fails with EBADF, as before. Executed programs see the descriptors closed. main() must
/// call this before anything opens a file.
void occupy_closed_standard_descriptors();

}  // namespace rocemu
