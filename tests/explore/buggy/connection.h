// What the programs of this folder share: the ordinary part of a program in which a client and a
// server, two processes, exchange messages over one RC queue pair. Every wait in here ends after
// PATIENCE_MS, and every failure ends the process with a message and status 1.
#pragma once
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

enum { PATIENCE_MS = 30000, NAME_LENGTH = 32 };

struct connection {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;  // of both queues
  struct ibv_qp* qp;

  // If it was made by librdmacm.
  struct rdma_event_channel* events;
  struct rdma_cm_id* listener;  // of the server
  struct rdma_cm_id* id;
};

// Memory of the peer's, for RDMA.
struct remote {
  uint64_t address;
  uint32_t rkey;
};

// Runs both functions in separate processes with a socket between them. Returns 0 if both return.
int run_server_and_client(void (*server)(int socket), void (*client)(int socket));

void send_all(int socket, const void* data, size_t size);
void receive_all(int socket, void* data, size_t size);

// ---- By librdmacm: first the id, then the queues, then the connection ----

void listen_for_client(struct connection* c, int socket);  // tells the client the port
void await_request(struct connection* c);
void resolve_server(struct connection* c, int socket);
void resolve_port(struct connection* c, uint16_t port);
void open_queues(struct connection* c, uint32_t sends, uint32_t receives, int cq_entries);
void accept_client(struct connection* c, const struct remote* ours);  // NULL: nothing to offer
void connect_to_server(struct connection* c, struct remote* theirs);  // NULL: nothing is wanted

// The next event has to be this one. Returns the id that it is about.
struct rdma_cm_id* await_event(struct rdma_event_channel* events, enum rdma_cm_event_type type);
void await_readable(int descriptor, const char* what);

void disconnect(struct connection* c);  // and waits until both sides know

// ---- Without: the two sides exchange QP numbers by the socket ----

void open_device(struct connection* c);       // open_queues is next, then receives are posted
void reset_queue_pair(struct connection* c);  // to be connected once more by an exchange
void exchange(struct connection* c, int socket, const struct remote* ours, struct remote* theirs);

// ---- Once connected ----

struct ibv_mr* register_memory(struct connection* c, void* memory, size_t size);
void deregister(struct ibv_mr* mr);
struct remote remote_of(const struct ibv_mr* mr);
void post_receive(struct connection* c, struct ibv_mr* mr, void* at, uint32_t size, uint64_t wr_id);
void post_send(struct connection* c, struct ibv_mr* mr, void* at, uint32_t size, uint64_t wr_id);
void post_rdma(struct connection* c, enum ibv_wr_opcode opcode, struct ibv_mr* mr, void* at,
               uint32_t size, struct remote theirs);
int poll_one(struct connection* c, struct ibv_wc* wc);  // returns 1, or 0 if there is none
void arm(struct connection* c);                         // the next completion raises an event
void take_event(struct connection* c);                  // sleeps until there is one
struct ibv_wc await_completion(struct connection* c);   // with whatever status
struct ibv_wc await_success(struct connection* c);
void close_connection(struct connection* c);
