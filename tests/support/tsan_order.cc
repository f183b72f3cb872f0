// Tells the thread sanitizer what Abseil and gRPC order.
//
// The system's libraries are compiled without the sanitizer, which therefore
// sees none of their locks, and takes all that they guard for a race. The
// functions here have the names of theirs: the program's come first, for the
// libraries' calls of each other, too, and pass on to them. Part of the build
// with the thread sanitizer only.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace {

// Abseil's detector of deadlocks shares data of its own that the sanitizer
// would report.
[[maybe_unused]] const bool detector_is_off = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

// The function that would be called if there were none of that name here.
template <typename Function>
Function* Next(const char* name, Function* /*here*/) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next == nullptr) std::abort();
  return reinterpret_cast<Function*>(next);
}

}  // namespace

#define TIMECACHED_NEXT(function) \
  static auto* const next = Next(#function, &function)

// The names are those of the member functions in Debian 12's Abseil, 20220623.
#define TIMECACHED_ABSL(name) _ZN4absl7debian3##name

extern "C" {

void _ZN4absl7debian35Mutex4LockEv(absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex4LockEv);
  next(mu);
  __tsan_acquire(mu);
}

bool _ZN4absl7debian35Mutex7TryLockEv(absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex7TryLockEv);
  if (!next(mu)) return false;
  __tsan_acquire(mu);
  return true;
}

void _ZN4absl7debian35Mutex6UnlockEv(absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex6UnlockEv);
  __tsan_release(mu);
  next(mu);
}

void _ZN4absl7debian35Mutex10ReaderLockEv(absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex10ReaderLockEv);
  next(mu);
  __tsan_acquire(mu);
}

void _ZN4absl7debian35Mutex12ReaderUnlockEv(absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex12ReaderUnlockEv);
  __tsan_release(mu);
  next(mu);
}

void _ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE(
    absl::Mutex* mu, const absl::Condition& condition) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE);
  next(mu, condition);
  __tsan_acquire(mu);
}

void _ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(
    absl::Mutex* mu, const absl::Condition& condition) {
  TIMECACHED_NEXT(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE);
  __tsan_release(mu);
  next(mu, condition);
  __tsan_acquire(mu);
}

void _ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(absl::CondVar* condition,
                                                absl::Mutex* mu) {
  TIMECACHED_NEXT(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE);
  __tsan_release(mu);
  next(condition, mu);
  __tsan_acquire(mu);
}

bool _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE(
    absl::CondVar* condition, absl::Mutex* mu, absl::Duration timeout) {
  TIMECACHED_NEXT(
      _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE);
  __tsan_release(mu);
  const bool timed_out = next(condition, mu, timeout);
  __tsan_acquire(mu);
  return timed_out;
}

bool _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE(
    absl::CondVar* condition, absl::Mutex* mu, absl::Time deadline) {
  TIMECACHED_NEXT(
      _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE);
  __tsan_release(mu);
  const bool timed_out = next(condition, mu, deadline);
  __tsan_acquire(mu);
  return timed_out;
}

// What a call's operations are begun with, their callbacks see.
struct grpc_call;
struct grpc_op;

int grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count,
                          void* tag, void* reserved) {
  TIMECACHED_NEXT(grpc_call_start_batch);
  __tsan_release(call);
  return next(call, ops, count, tag, reserved);
}

// gRPC's C++ gives a reference back for each batch that has ended, before the
// callback.
void grpc_call_unref(grpc_call* call) {
  TIMECACHED_NEXT(grpc_call_unref);
  __tsan_acquire(call);
  next(call);
}

}  // extern "C"
