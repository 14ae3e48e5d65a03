// A call that waits keeps its file: in Linux a thread that is blocked in read(2) stays so when
// another closes the descriptor, and reads what still comes. Here it looks again in each of its
// turns, by the descriptor's number, and so gets another descriptor when that one is closed.
#pragma once

namespace rocemu::turns {

/// The calling thread waits for the descriptor from now on.
void hold_file(int fd);
/// Returns the descriptor by which the calling thread looks for what it waits for.
int held_file(int fd);
/// It does not wait any more. Threads that are cancelled or end do not say so themselves.
void release_file();

/// The calling thread is about to close the descriptor.
void before_close(int fd);

/// In a child of fork(2), which has none of the other threads.
void forget_held_files();

}  // namespace rocemu::turns
