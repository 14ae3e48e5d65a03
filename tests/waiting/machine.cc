#include "tests/waiting/machine.h"

#include <algorithm>
#include <utility>

namespace rocemu::test {

Thread& Machine::add(size_t processor, std::function<Action()> act) {
  threads_.push_back(std::make_unique<Thread>(std::move(act), processor));
  processors_[processor].queue.push_back(threads_.back().get());
  return *threads_.back();
}

void Machine::start(Processor& processor, Thread& thread, Nanoseconds cost) {
  processor.current = &thread;
  processor.began = now_;
  processor.done_at = now_ + cost + std::exchange(thread.left_, 0);
  thread.on_ = static_cast<size_t>(&processor - processors_.data());
}

void Machine::switch_to_next(Processor& processor) {
  processor.current = nullptr;
  processor.done_at = kNever;
  if (processor.queue.empty()) return;
  Thread& next = *processor.queue.front();
  processor.queue.pop_front();
  start(processor, next, config_.context_switch);
}

void Machine::put_back(Processor& processor) {
  Thread& thread = *processor.current;
  thread.left_ = std::max<Nanoseconds>(processor.done_at - now_, 0);
  insert(processor, thread);
}

void Machine::insert(Processor& processor, Thread& thread) {
  const auto has_run_more = [&](const Thread* other) { return other->used_ > thread.used_; };
  processor.queue.insert(std::ranges::find_if(processor.queue, has_run_more), &thread);
}

void Machine::wake(Thread& thread) {
  if (!std::exchange(thread.asleep_, false)) return;
  Processor* idle = nullptr;
  const auto is_idle = [](const Processor& processor) {
    return processor.current == nullptr && processor.queue.empty();
  };
  Processor& before = processors_[thread.on_];
  if (is_idle(before)) {
    idle = &before;
  } else if (const auto found = std::ranges::find_if(processors_, is_idle);
             found != processors_.end()) {
    idle = &*found;
  }
  if (idle != nullptr) return start(*idle, thread, config_.wake_up);
  if (before.current != nullptr && before.current->used_ > thread.used_) {
    put_back(before);
    return start(before, thread, config_.context_switch);
  }
  insert(before, thread);
}

void Machine::step(Processor& processor) {
  Thread& thread = *processor.current;
  const Action action = thread.act_();
  switch (action.kind) {
    case Action::Kind::kRun:
      thread.used_ += action.time;
      processor.done_at = now_ + action.time;
      if (now_ - processor.began >= config_.time_slice && !processor.queue.empty()) {
        thread.left_ = action.time;
        processor.queue.push_back(&thread);
        switch_to_next(processor);
      }
      return;
    case Action::Kind::kYield:
      if (processor.queue.empty()) {
        thread.used_ += config_.yield_alone;
        processor.done_at = now_ + config_.yield_alone;
        return;
      }
      processor.queue.push_back(&thread);
      return switch_to_next(processor);
    case Action::Kind::kSleep:
      thread.asleep_ = true;
      thread.wake_at_ = action.time == kNever ? kNever : now_ + action.time;
      return switch_to_next(processor);
  }
}

void Machine::run(Nanoseconds until) {
  for (Processor& processor : processors_) {
    if (processor.current == nullptr) switch_to_next(processor);
  }
  while (now_ < until) {
    Nanoseconds next = kNever;
    for (const Processor& processor : processors_) next = std::min(next, processor.done_at);
    for (const auto& thread : threads_) {
      if (thread->asleep_) next = std::min(next, thread->wake_at_);
    }
    if (next == kNever) return;
    now_ = std::max(now_, next);
    for (const auto& thread : threads_) {
      if (thread->asleep_ && thread->wake_at_ <= now_) wake(*thread);
    }
    for (Processor& processor : processors_) {
      if (processor.current != nullptr && processor.done_at <= now_) step(processor);
    }
  }
}

}  // namespace rocemu::test
