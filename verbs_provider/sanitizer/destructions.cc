#include "verbs_provider/sanitizer/destructions.h"

#include <cerrno>
#include <string>

#include "emulator/sanitizer/words.h"
#include "verbs_provider/sanitizer/leaving.h"
#include "verbs_provider/sanitizer/mapping_changes.h"
#include "verbs_provider/sanitizer/program.h"
#include "verbs_provider/sanitizer/wrapped_verbs.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;

Table<Object>& table_of(Objects& objects, const ibv_pd*) {
  return objects.pds;
}
Table<Object>& table_of(Objects& objects, const ibv_mw*) {
  return objects.windows;
}
Table<Object>& table_of(Objects& objects, const ibv_ah*) {
  return objects.address_handles;
}
Table<Mr>& table_of(Objects& objects, const ibv_mr*) {
  return objects.regions;
}
Table<Cq>& table_of(Objects& objects, const ibv_cq*) {
  return objects.cqs;
}
Table<Srq>& table_of(Objects& objects, const ibv_srq*) {
  return objects.srqs;
}
Table<Qp>& table_of(Objects& objects, const ibv_qp*) {
  return objects.qps;
}

void forget_number(Objects&, const Object&) {}
void forget_number(Objects& objects, const Qp& qp) {
  objects.qps_by_number.erase({qp.context, qp.number});
}
void forget_number(Objects& objects, const Srq& srq) {
  objects.srqs_by_number.erase({srq.context, srq.number});
}
void forget_number(Objects& objects, const Mr& region) {
  const auto found = objects.regions_by_lkey.find(region.lkey);
  if (found != objects.regions_by_lkey.end() && found->second == &region)
    objects.regions_by_lkey.erase(found);
}
void enter_number(Objects&, Object&) {}
void enter_number(Objects& objects, Mr& region) {
  objects.regions_by_lkey[region.lkey] = &region;
}
void enter_number(Objects& objects, Qp& qp) {
  objects.qps_by_number[{qp.context, qp.number}] = &qp;
}
void enter_number(Objects& objects, Srq& srq) {
  objects.srqs_by_number[{srq.context, srq.number}] = &srq;
}

/// The objects that still use the object to be destroyed
struct Users {
  const Object* first = nullptr;
  uint64_t count = 0;

  void add(const Object& object) {
    const bool is_first = first == nullptr || std::pair(object.kind, object.number) <
                                                  std::pair(first->kind, first->number);
    if (is_first) first = &object;
    ++count;
  }
};

Users users_of(const Objects& objects, const Object& used) {
  Users users;
  const auto visit = [&](const Object& one) {
    if (one.pd == used.handle) users.add(one);
  };
  if (used.kind == ObjectKind::kPd) {
    objects.regions.for_each(visit);
    objects.windows.for_each(visit);
    objects.address_handles.for_each(visit);
    objects.srqs.for_each(visit);
    objects.qps.for_each(visit);
  }
  objects.qps.for_each([&](const Qp& qp) {
    if (qp.sends_to == &used || qp.receives_from == &used || qp.srq == used.handle) users.add(qp);
  });
  objects.srqs.for_each([&](const Srq& srq) {
    if (srq.cq == used.handle) users.add(srq);
  });
  return users;
}

void tell_of_failure(Program& program, const Object& object, const CallSite& site, int error) {
  const Objects& objects = program.objects();
  program.sanitizer().tell(FailedDestruction{objects, object, site, error});
  if (error != EBUSY) return;
  const Users users = users_of(objects, object);
  std::string message = "could not destroy " + object.title() + ", which ";
  if (users.first == nullptr) {
    message += "is in use";
  } else if (users.count == 1) {
    message += users.first->title() + " uses";
  } else {
    message += users.first->title() + " and " + count_of(users.count - 1, "other object") + " use";
  }
  program.sanitizer().tell(
      WrongState{message, users.first != nullptr ? users.first->created : object.created, site});
}

void note_end(Program&, const Object&, const char*, const CallSite&) {}
/// Records the end of a region's R_Key: if a peer still uses the key later, the NIC names the key
/// in its report.
void note_end(Program& program, const Mr& region, const char* device, const CallSite& site) {
  if (region.is_remote) program.log().write_key(region, device, site);
}

/// Destroys the object by `destroy`. During the call the object is not in its table: as soon as the
/// old object is destroyed, another thread may get a new object with the same address.
template <class Public, class Destroy>
int watch(Public* base, ibv_context* context, const char* call, Destroy destroy) {
  Program* const program = Program::get();
  if (program == nullptr) return destroy();
  program->lock.lock();
  take_mapping_changes(*program);
  auto& table = table_of(program->objects(), base);
  auto object = table.take(base);
  if (object == nullptr) {
    program->lock.unlock();
    return destroy();
  }
  forget_number(program->objects(), *object);
  const CallSite site = program->here(call, context);
  program->sanitizer().tell(Destruction{program->objects(), *object, this_thread(), site});
  const char* const device = context->device->name;
  Leaving leaving(*object, site);
  program->lock.unlock();
  const int error = destroy();
  const Guard guard(program->lock);
  leaving.leave();
  if (error == 0) {
    note_end(*program, *object, device, site);
  } else {
    tell_of_failure(*program, *object, site, error);
    enter_number(program->objects(), *object);
    table.add(std::move(object));
    errno = error;
  }
  return error;
}

int dealloc_pd(ibv_pd* pd) {
  return watch(pd, pd->context, "ibv_dealloc_pd", [=] { return original.dealloc_pd(pd); });
}
int dereg_mr(provider::VerbsMr* mr) {
  return watch(&mr->mr, mr->mr.context, "ibv_dereg_mr", [=] { return original.dereg_mr(mr); });
}
int dealloc_mw(ibv_mw* mw) {
  return watch(mw, mw->context, "ibv_dealloc_mw", [=] { return original.dealloc_mw(mw); });
}
int destroy_ah(ibv_ah* ah) {
  return watch(ah, ah->context, "ibv_destroy_ah", [=] { return original.destroy_ah(ah); });
}
int destroy_cq(ibv_cq* cq) {
  return watch(cq, cq->context, "ibv_destroy_cq", [=] { return original.destroy_cq(cq); });
}
int destroy_srq(ibv_srq* srq) {
  return watch(srq, srq->context, "ibv_destroy_srq", [=] { return original.destroy_srq(srq); });
}
int destroy_qp(ibv_qp* qp) {
  return watch(qp, qp->context, "ibv_destroy_qp", [=] { return original.destroy_qp(qp); });
}

/// Removes the PD: the program cannot use the objects of an imported PD or a closed context any
/// more.
void unimport_pd(ibv_pd* pd) {
  if (Program* const program = Program::get()) {
    const Guard guard(program->lock);
    program->objects().pds.take(pd);
  }
  original.unimport_pd(pd);
}

void free_context(ibv_context* context) {
  if (Program* const program = Program::get()) {
    const Guard guard(program->lock);
    program->forget(context);
  }
  original.free_context(context);
}

}  // namespace

void wrap_destructions(provider::ContextOps& ops) {
  ops.dealloc_mw = dealloc_mw;
  ops.dealloc_pd = dealloc_pd;
  ops.dereg_mr = dereg_mr;
  ops.destroy_ah = destroy_ah;
  ops.destroy_cq = destroy_cq;
  ops.destroy_qp = destroy_qp;
  ops.destroy_srq = destroy_srq;
  ops.free_context = free_context;
  ops.unimport_pd = unimport_pd;
}

}  // namespace rocemu::sanitizer
