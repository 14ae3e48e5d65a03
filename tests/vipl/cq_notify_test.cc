// Tests VipCQNotify(3via), sentence by sentence.
#include "tests/vipl/failing_memory.h"
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

class CQNotify : public PairTest {
 protected:
  void SetUp() override {
    cq = node.cq();
    a = node.vi();
    b = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, cq, cq);
    connect(node, a, node, b);
  }

  /// Sends messages to b (or `to`), and waits until they are complete on both sides.
  void deliver(size_t count, VIP_VI_HANDLE from = nullptr, VIP_VI_HANDLE to = nullptr) {
    for (size_t i = 0; i < count; ++i) {
      post_recv(to != nullptr ? to : b, node.descriptor(next_slot++ % 32));
      VIP_DESCRIPTOR* send = node.descriptor(40);
      post_send(from != nullptr ? from : a, send);
      sent(from != nullptr ? from : a, send);
    }
  }
  VIP_RETURN notify(VIP_PVOID context) { return VipCQNotify(cq, context, &CQNotify::add); }
  static void add(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv) {
    calls->add({context, nic, vi, nullptr, recv, std::this_thread::get_id()});
  }
  static VIP_PVOID number(uintptr_t value) { return reinterpret_cast<VIP_PVOID>(value); }
  bool has_entry() {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = 0;
    return VipCQDone(cq, &vi, &recv) == VIP_SUCCESS;
  }
  /// Removes everything that is posted to b, so that b can be destroyed.
  void empty_queues() {
    EXPECT_EQ(VipDisconnect(b), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = nullptr;
    do VipRecvDone(b, &done);
    while (done != nullptr);
    do VipSendDone(b, &done);
    while (done != nullptr);
  }

  static inline Calls* calls = nullptr;
  Calls own_calls;
  VIP_CQ_HANDLE cq = nullptr;
  size_t next_slot = 0;

  CQNotify() { calls = &own_calls; }
};

// "If there is an entry, it is removed from the queue and the handler is invoked."
TEST_F(CQNotify, AnEntryThatIsThereIsTakenAndTheHandlerCalled) {
  deliver(2);
  EXPECT_EQ(notify(number(1)), VIP_SUCCESS);
  own_calls.wait_for(1);
  EXPECT_TRUE(has_entry());
  EXPECT_FALSE(has_entry());
}

// The entry has been removed when the call returns, even if the handler runs later.
TEST_F(CQNotify, TheEntryIsGoneOnReturn) {
  deliver(1);
  EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  EXPECT_FALSE(has_entry());
  own_calls.wait_for(1);
}

// "ViHandle and RecvQueue are set to indicate which work queue contains the completed descriptor."
TEST_F(CQNotify, TheHandlerIsToldContextNicViAndQueue) {
  deliver(1);
  EXPECT_EQ(notify(number(5)), VIP_SUCCESS);
  auto call = own_calls.wait_for(1)[0];
  EXPECT_EQ(call.context, number(5));
  EXPECT_EQ(call.nic, node.nic);
  EXPECT_EQ(call.vi, b);
  EXPECT_EQ(call.recv, VIP_TRUE);
  VIP_DESCRIPTOR* done = nullptr;
  // the descriptor stays in the work queue until VipRecvDone()
  EXPECT_EQ(VipRecvDone(b, &done), VIP_SUCCESS);

  post_recv(a, node.descriptor(33));
  VIP_DESCRIPTOR* send = node.descriptor(34);
  post_send(b, send);
  EXPECT_EQ(notify(number(6)), VIP_SUCCESS);
  call = own_calls.wait_for(2)[1];
  EXPECT_EQ(call.context, number(6));
  EXPECT_EQ(call.vi, b);
  EXPECT_EQ(call.recv, VIP_FALSE);
  EXPECT_EQ(VipSendDone(b, &done), VIP_SUCCESS);
  EXPECT_EQ(done, send);
}

// "If there is none, interrupts are enabled; when an entry is generated, the handler is invoked."
TEST_F(CQNotify, WithoutAnEntryTheHandlerIsCalledWhenOneComes) {
  EXPECT_EQ(notify(number(1)), VIP_SUCCESS);
  EXPECT_EQ(own_calls.count(), 0u);
  deliver(1);
  EXPECT_EQ(own_calls.wait_for(1)[0].vi, b);
  EXPECT_FALSE(has_entry());
}

// When a program registers a handler, it may hold a lock that the handler needs.
TEST_F(CQNotify, TheHandlerIsNotCalledByTheThreadThatRegisters) {
  deliver(1);
  EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  EXPECT_NE(own_calls.wait_for(1)[0].thread, std::this_thread::get_id());
}

// "This registration is only for a single entry."
TEST_F(CQNotify, OneRegistrationIsForOneEntry) {
  EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  deliver(3);
  own_calls.wait_for(1);
  EXPECT_TRUE(has_entry());
  EXPECT_TRUE(has_entry());
  EXPECT_FALSE(has_entry());
  EXPECT_EQ(own_calls.count(), 1u);
}

// "In order for the handler to be invoked multiple times, it must be registered multiple times."
TEST_F(CQNotify, AHandlerThatRegistersItselfAgainGetsAllEntries) {
  static VIP_CQ_HANDLE queue;
  queue = cq;
  struct Again {
    static void add(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv) {
      EXPECT_EQ(VipCQNotify(queue, context, &Again::add), VIP_SUCCESS);
      CQNotify::add(context, nic, vi, recv);
    }
  };
  deliver(5);
  EXPECT_EQ(VipCQNotify(cq, nullptr, &Again::add), VIP_SUCCESS);
  own_calls.wait_for(5);
  deliver(20);
  own_calls.wait_for(25);
  EXPECT_FALSE(has_entry());
}

// "Multiple handlers can be registered at one time and will be queued in entry order."
TEST_F(CQNotify, SeveralHandlersAreServedInTheOrderOfCompletion) {
  VIP_VI_HANDLE c = node.vi();
  VIP_VI_HANDLE d = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, nullptr, cq);
  connect(node, c, node, d);
  for (uintptr_t i = 0; i < 9; ++i) EXPECT_EQ(notify(number(i)), VIP_SUCCESS);
  std::vector<VIP_VI_HANDLE> order;
  for (int i = 0; i < 9; ++i) {
    const bool first = i % 3 != 1;
    deliver(1, first ? a : c, first ? b : d);
    order.push_back(first ? b : d);
  }
  const auto all = own_calls.wait_for(9);
  for (uintptr_t i = 0; i < 9; ++i) {
    EXPECT_EQ(all[i].context, number(i));
    EXPECT_EQ(all[i].vi, order[i]) << i;
  }
}

// The thread that registered first gets the entry, even if the entry arrived before the second
// thread registered.
TEST_F(CQNotify, AThreadThatRegistersLaterGetsALaterEntry) {
  EXPECT_EQ(notify(number(1)), VIP_SUCCESS);
  deliver(1);
  EXPECT_EQ(notify(number(2)), VIP_SUCCESS);
  EXPECT_EQ(own_calls.wait_for(1)[0].context, number(1));
  deliver(1);
  EXPECT_EQ(own_calls.wait_for(2)[1].context, number(2));
}

// "Destruction of the queue cancels any pending calls."
TEST_F(CQNotify, DestroyingTheQueueCancelsPendingRegistrations) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  empty_queues();  // b has nothing posted, so no descriptor completes here
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  // Handlers run one after the other. When the next handler has run, those of the destroyed queue
  // would have run, too.
  VIP_CQ_HANDLE other = node.cq();
  VIP_VI_HANDLE d = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, nullptr, other);
  VIP_DESCRIPTOR* wrong = node.descriptor(0);
  wrong->CS.Control = VIP_CONTROL_RESERVED;
  post_recv(d, wrong);  // complete at once
  EXPECT_EQ(VipCQNotify(other, number(9), &CQNotify::add), VIP_SUCCESS);
  EXPECT_EQ(own_calls.wait_for(1)[0].context, number(9));
}

struct Inside {
  VIP_CQ_HANDLE cq;
  VIP_VI_HANDLE vi;
  std::atomic<int> calls{0};
  std::atomic<bool> may_go_on{false};
  std::atomic<bool> over{false};
};

// Destroys the queue in a handler, when entries for further handlers were already removed.
TEST_F(CQNotify, AHandlerThatDestroysTheQueueIsTheLast) {
  Inside inside{cq, b};
  const auto handler = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
    auto* self = static_cast<Inside*>(context);
    ++self->calls;
    EXPECT_TRUE(eventually([&] { return self->may_go_on.load(); }));
    EXPECT_EQ(VipDestroyVi(self->vi), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyCQ(self->cq), VIP_SUCCESS);
    EXPECT_EQ(VipCQNotify(self->cq, nullptr, &CQNotify::add), VIP_INVALID_PARAMETER);
    self->over = true;
  };
  deliver(3);
  EXPECT_EQ(VipCQNotify(cq, &inside, handler), VIP_SUCCESS);
  EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
  empty_queues();
  inside.may_go_on = true;
  EXPECT_TRUE(eventually([&] { return inside.over.load(); }));
  EXPECT_EQ(VipCloseNic(node.nic), VIP_SUCCESS);  // after this, no handler runs any more
  EXPECT_EQ(inside.calls, 1);
  EXPECT_EQ(own_calls.count(), 0u);
}

TEST_F(CQNotify, DestroyingTheQueueWaitsForTheHandlerThatRuns) {
  Inside inside{cq, b};
  const auto handler = [](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
    auto* self = static_cast<Inside*>(context);
    ++self->calls;
    EXPECT_TRUE(eventually([&] { return self->may_go_on.load(); }));
    self->over = true;
  };
  deliver(1);
  EXPECT_EQ(VipCQNotify(cq, &inside, handler), VIP_SUCCESS);
  EXPECT_TRUE(eventually([&] { return inside.calls == 1; }));
  empty_queues();
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  std::thread later([&] { inside.may_go_on = true; });
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  EXPECT_TRUE(inside.over);
  later.join();
}

TEST_F(CQNotify, AHandlerMayCallAllOfVipl) {
  Inside inside{cq, b};
  const auto handler = [](VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN) {
    auto* self = static_cast<Inside*>(context);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvDone(vi, &done), VIP_SUCCESS);
    VIP_CQ_HANDLE made = nullptr;
    EXPECT_EQ(VipCreateCQ(nic, 4, &made), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyCQ(made), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(vi), VIP_SUCCESS);
    EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
    self->over = true;
  };
  deliver(1);
  EXPECT_EQ(VipCQNotify(cq, &inside, handler), VIP_SUCCESS);
  EXPECT_TRUE(eventually([&] { return inside.over.load(); }));
}

TEST_F(CQNotify, ThreadsThatRegisterAtOnceGetEachEntryOnce) {
  constexpr size_t kThreads = 4;
  constexpr size_t kEach = 16;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kEach; ++i) {
        EXPECT_EQ(notify(number(t * kEach + i)), VIP_SUCCESS);
        std::this_thread::yield();
      }
    });
  }
  deliver(kThreads * kEach);
  for (auto& thread : threads) thread.join();
  std::vector<bool> seen(kThreads * kEach);
  for (const auto& call : own_calls.wait_for(kThreads * kEach)) {
    const auto index = reinterpret_cast<uintptr_t>(call.context);
    EXPECT_FALSE(seen[index]);
    seen[index] = true;
  }
  EXPECT_FALSE(has_entry());
  EXPECT_EQ(own_calls.count(), kThreads * kEach);
}

// While one thread sleeps on the queue and another one polls it, no entry is lost, and none is
// delivered twice.
TEST_F(CQNotify, ShareTheQueueWithThreadsThatWaitAndPoll) {
  std::atomic<size_t> taken{0};
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = 0;
    while (VipCQWait(cq, VIP_INFINITE, &vi, &recv) == VIP_SUCCESS) ++taken;
  });
  std::thread polling([&] {
    while (!over) taken += has_entry() ? 1 : 0;
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(notify(nullptr), VIP_SUCCESS);
    deliver(2);
  }
  own_calls.wait_for(50);
  EXPECT_TRUE(eventually([&] { return taken == 50; }));
  over = true;
  polling.join();
  for (size_t i = 0; i < 20; ++i) deliver(1);  // now only the thread that sleeps takes them
  EXPECT_TRUE(eventually([&] { return taken == 70; }));
  empty_queues();
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  waiting.join();
  EXPECT_EQ(own_calls.count(), 50u);
}

TEST_F(CQNotify, AWrongQueueOrHandlerIsAnInvalidParameter) {
  EXPECT_EQ(VipCQNotify(nullptr, nullptr, &CQNotify::add), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCQNotify(b, nullptr, &CQNotify::add), VIP_INVALID_PARAMETER);  // a VI is not a queue
  EXPECT_EQ(VipCQNotify(cq, nullptr, nullptr), VIP_INVALID_PARAMETER);
  VIP_CQ_HANDLE stale = node.cq();
  EXPECT_EQ(VipDestroyCQ(stale), VIP_SUCCESS);
  EXPECT_EQ(VipCQNotify(stale, nullptr, &CQNotify::add), VIP_INVALID_PARAMETER);
}

TEST_F(CQNotify, WithoutMemoryTheCallFailsAndRegistrationsRemain) {
  size_t registered = 0;
  VIP_RETURN result = VIP_SUCCESS;
  allocations_fail = true;
  for (; registered < 10'000; ++registered) {
    result = VipCQNotify(cq, nullptr, &CQNotify::add);
    if (result != VIP_SUCCESS) break;
  }
  allocations_fail = false;
  EXPECT_EQ(result, VIP_ERROR_RESOURCE);
  deliver(registered + 1);
  own_calls.wait_for(registered);
  EXPECT_TRUE(has_entry());  // no handler was registered for the last entry
}

}  // namespace
}  // namespace rocemu::vipl_test
