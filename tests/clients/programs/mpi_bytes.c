// Compares every byte that MPI ranks exchange: point to point, allreduce, alltoall, RMA.
// usage: mpi_bytes [LARGEST], the size in bytes above which messages are left out
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static unsigned char pattern(int from, int to, size_t i) {
  return (unsigned char)(from * 31 + to * 17 + i * 7 + i / 251);
}

static void fail(const char* what, size_t size, size_t at) {
  fprintf(stderr, "rank %d: %s of %zu bytes is wrong at %zu\n", rank, what, size, at);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* allocate(size_t size) {
  void* memory = calloc(1, size + 1);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  return memory;
}

static void point_to_point(size_t size) {
  unsigned char* out = allocate(size);
  unsigned char* in = allocate(size);
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;
    for (size_t i = 0; i < size; ++i) out[i] = pattern(rank, to, i);
    memset(in, 0, size);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, to, 5, in, (int)size, MPI_BYTE, from, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < size; ++i)
      if (in[i] != pattern(from, rank, i)) fail("a message", size, i);
  }
  free(out);
  free(in);
}

static void allreduce(size_t count) {
  long* in = allocate(count * sizeof(long));
  long* out = allocate(count * sizeof(long));
  for (size_t i = 0; i < count; ++i) in[i] = (long)i * (rank + 1);
  MPI_Allreduce(in, out, (int)count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i)
    if (out[i] != (long)i * (ranks * (ranks + 1) / 2)) fail("an allreduce", count, i);
  free(in);
  free(out);
}

static void alltoall(size_t size) {
  unsigned char* out = allocate(size * (size_t)ranks);
  unsigned char* in = allocate(size * (size_t)ranks);
  for (int to = 0; to < ranks; ++to)
    for (size_t i = 0; i < size; ++i) out[(size_t)to * size + i] = pattern(rank, to, i);
  MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from)
    for (size_t i = 0; i < size; ++i)
      if (in[(size_t)from * size + i] != pattern(from, rank, i)) fail("an alltoall", size, i);
  free(out);
  free(in);
}

static void one_sided(size_t size) {
  unsigned char* window_memory;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(size * (size_t)ranks), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window_memory, &window);
  unsigned char* out = allocate(size);
  unsigned char* in = allocate(size);
  MPI_Win_fence(0, window);
  for (int to = 0; to < ranks; ++to) {
    for (size_t i = 0; i < size; ++i) out[i] = pattern(rank, to, i);
    MPI_Put(out, (int)size, MPI_BYTE, to, (MPI_Aint)((size_t)rank * size), (int)size, MPI_BYTE,
            window);
    MPI_Win_fence(0, window);
  }
  for (int from = 0; from < ranks; ++from)
    for (size_t i = 0; i < size; ++i)
      if (window_memory[(size_t)from * size + i] != pattern(from, rank, i)) fail("a put", size, i);
  MPI_Win_fence(0, window);
  const int neighbor = (rank + 1) % ranks;
  MPI_Get(in, (int)size, MPI_BYTE, neighbor, (MPI_Aint)((size_t)rank * size), (int)size, MPI_BYTE,
          window);
  MPI_Win_fence(0, window);
  for (size_t i = 0; i < size; ++i)
    if (in[i] != pattern(rank, neighbor, i)) fail("a get", size, i);
  MPI_Win_free(&window);

  long* counter;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
  MPI_Win_fence(0, window);
  *counter = 0;
  MPI_Win_fence(0, window);
  const long mine = rank + 1;
  MPI_Accumulate(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_fence(0, window);
  if (rank == 0 && *counter != ranks * (ranks + 1) / 2) fail("an accumulate", 8, 0);
  MPI_Win_free(&window);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static const size_t sizes[] = {0, 1, 63, 4096, 8193, 65536, 1000003};
  const size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= largest; ++i) {
    point_to_point(sizes[i]);
    allreduce(sizes[i] / sizeof(long));
    alltoall(sizes[i] / 4);
    if (sizes[i] != 0) one_sided(sizes[i] / 8 + 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks exchanged all bytes\n", ranks);
  MPI_Finalize();
  return 0;
}
