// An MPI program whose ranks talk to each other, for scripts/bench.
//
// Usage: mpi_ranks alltoall [FILE] | mpi_ranks ring
//
// With "alltoall", each rank sends 1 KiB to each rank, once and then 20 times. With FILE, rank 0
// then creates this file, and all ranks wait until it is deleted; meanwhile all connections exist.
// With "ring", a token of 64 bytes passes 20 times through all ranks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMessageBytes = 1024, kTokenBytes = 64, kRepetitions = 20 };

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void exchange(char* sent, char* received) {
  MPI_Alltoall(sent, kMessageBytes, MPI_CHAR, received, kMessageBytes, MPI_CHAR, MPI_COMM_WORLD);
}

// Exchanges, and prints how long the first exchange took and each later one.
static void all_to_all(int rank, int ranks) {
  char* sent = calloc((size_t)ranks, kMessageBytes);
  char* received = calloc((size_t)ranks, kMessageBytes);
  if (sent == NULL || received == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  const double began = now_s();
  exchange(sent, received);
  const double connected = now_s();
  for (int i = 0; i < kRepetitions; ++i) exchange(sent, received);
  if (rank == 0) {
    printf("first %.3f ms, each %.3f ms\n", 1e3 * (connected - began),
           1e3 * (now_s() - connected) / kRepetitions);
  }
  free(sent);
  free(received);
}

static void ring(int rank, int ranks) {
  char token[kTokenBytes] = {0};
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  for (int i = 0; i < kRepetitions; ++i) {
    if (rank == 0) MPI_Send(token, kTokenBytes, MPI_CHAR, next, 0, MPI_COMM_WORLD);
    MPI_Recv(token, kTokenBytes, MPI_CHAR, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(token, kTokenBytes, MPI_CHAR, next, 0, MPI_COMM_WORLD);
  }
}

// Creates the file, and returns after another program has deleted it.
static void wait_for_deletion(const char* path) {
  FILE* file = fopen(path, "w");
  if (file == NULL) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return;
  }
  fclose(file);
  while (access(path, F_OK) == 0) usleep(10000);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const double began = now_s();
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) printf("init %.3f s\n", now_s() - began);
  if (strcmp(argv[1], "ring") == 0) {
    ring(rank, ranks);
  } else {
    all_to_all(rank, ranks);
  }
  if (argc > 2 && rank == 0) wait_for_deletion(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) printf("total %.3f s\n", now_s() - began);
  return 0;
}
