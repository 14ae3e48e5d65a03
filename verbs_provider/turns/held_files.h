// Keeps the file of a waiting call. In Linux a thread that is blocked in read(2) remains blocked if
// another thread closes the descriptor, and reads data that still arrives. Here the thread would
// look up the descriptor by its number in each turn, and would get another file after the close; so
// it waits with a copy of the descriptor.
#pragma once

namespace rocemu::turns {

/// Notes that the calling thread waits for the descriptor from now on.
void hold_file(int fd);
/// Returns the descriptor with which the calling thread polls its file.
int held_file(int fd);
/// Ends the wait. Threads that are canceled or exit do not call this.
void release_file();

/// Copies the descriptor for the threads that wait for it. Must be called before the calling thread
/// closes the descriptor.
void before_close(int fd);

/// Forgets the waits of all threads. Called in a child of fork(2), which has none of the other
/// threads.
void forget_held_files();

}  // namespace rocemu::turns
