// Tells the thread sanitizer what Abseil and gRPC order.
//
// The system's libraries are compiled without the sanitizer, which therefore
// sees none of their locks, and takes all that they guard for a race. The
// functions here have the names of theirs. A program's own come first, for the
// libraries' calls of each other, too: each tells the sanitizer, and passes on
// to theirs. Part of all programs of the build with the thread sanitizer, and
// of no other.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"

// Of the sanitizer, and in none of its headers.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);

namespace {

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

// Abseil's detector of deadlocks shares data of its own that the sanitizer
// would report.
[[maybe_unused]] const bool detector_is_off = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

// The library's function of the name of `here`.
template <typename Function>
Function* Next(const char* name, Function* /*here*/) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next == nullptr) std::abort();
  return reinterpret_cast<Function*>(next);
}
#define NEXT(function) static auto* const next = Next(#function, &function)

// While it lives, this thread's accesses are not looked at: a lock evaluates
// conditions, others' too, where it has just been given up or not yet been
// taken.
class Unseen {
 public:
  Unseen() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~Unseen() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// `next`, which takes `lock` in its course.
template <typename Function, typename... Arguments>
auto Taking(void* lock, Function* next, Arguments... arguments) {
  struct Taken {
    ~Taken() { __tsan_acquire(lock); }
    void* lock;
  };
  const Taken taken{lock};
  const Unseen unseen;
  return next(arguments...);
}

// `next`, which gives `lock` up.
template <typename Function, typename... Arguments>
auto Giving(void* lock, Function* next, Arguments... arguments) {
  __tsan_release(lock);
  const Unseen unseen;
  return next(arguments...);
}

// `next`, which gives `lock` up, waits and takes it again.
template <typename Function, typename... Arguments>
auto Waiting(void* lock, Function* next, Arguments... arguments) {
  __tsan_release(lock);
  return Taking(lock, next, arguments...);
}

}  // namespace

extern "C" {

// --- The sanitizer. What libraries do by themselves is not looked at. gRPC's
// headers are compiled with us, and ordered by atomics in its library, of which
// nobody tells it: what they themselves access, a message as they read it, which
// reactor a server's call has, and what they call at its end, for which gRPC
// counts references.

const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1";
}
const char* __tsan_default_suppressions() {
  return "race_top:^grpc::\n"
         "race:InterceptorBatchMethodsImpl\n"
         "race:^grpc::internal::CallOp*::FinishOp\n"
         "race:^grpc::internal::ServerCallbackCall::\n"
         "race:^grpc::internal::*::reactor()$\n"
         "race:^grpc::internal::*::CallOnDone\n"
         "thread:grpc_core::Thread\n";
}

// --- absl::Mutex, CondVar and Notification. The names are those of the member
// functions in Debian 12's Abseil, 20220623; a reference is a pointer there.

void _ZN4absl7debian35Mutex4LockEv(Mutex* mu) {
  NEXT(_ZN4absl7debian35Mutex4LockEv);
  Taking(mu, next, mu);
}
void _ZN4absl7debian35Mutex10ReaderLockEv(Mutex* mu) {
  NEXT(_ZN4absl7debian35Mutex10ReaderLockEv);
  Taking(mu, next, mu);
}
void _ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE(Mutex* mu,
                                                       const Condition* until) {
  NEXT(_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE);
  Taking(mu, next, mu, until);
}
bool _ZN4absl7debian35Mutex7TryLockEv(Mutex* mu) {
  NEXT(_ZN4absl7debian35Mutex7TryLockEv);
  const bool locked = next(mu);
  if (locked) __tsan_acquire(mu);
  return locked;
}

void _ZN4absl7debian35Mutex6UnlockEv(Mutex* mu) {
  NEXT(_ZN4absl7debian35Mutex6UnlockEv);
  Giving(mu, next, mu);
}
void _ZN4absl7debian35Mutex12ReaderUnlockEv(Mutex* mu) {
  NEXT(_ZN4absl7debian35Mutex12ReaderUnlockEv);
  Giving(mu, next, mu);
}

void _ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(Mutex* mu,
                                                    const Condition* until) {
  NEXT(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE);
  Waiting(mu, next, mu, until);
}
bool _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE(
    Mutex* mu, const Condition* until, Duration timeout) {
  NEXT(
      _ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE);
  return Waiting(mu, next, mu, until, timeout);
}
bool _ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE(
    Mutex* mu, const Condition* until, Time deadline) {
  NEXT(_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE);
  return Waiting(mu, next, mu, until, deadline);
}

void _ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(CondVar* changed, Mutex* mu) {
  NEXT(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE);
  Waiting(mu, next, changed, mu);
}
bool _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE(
    CondVar* changed, Mutex* mu, Duration timeout) {
  NEXT(_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE);
  return Waiting(mu, next, changed, mu, timeout);
}
bool _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE(
    CondVar* changed, Mutex* mu, Time deadline) {
  NEXT(_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE);
  return Waiting(mu, next, changed, mu, deadline);
}

void _ZN4absl7debian312Notification6NotifyEv(Notification* done) {
  NEXT(_ZN4absl7debian312Notification6NotifyEv);
  Giving(done, next, done);
}
void _ZNK4absl7debian312Notification19WaitForNotificationEv(
    Notification* done) {
  NEXT(_ZNK4absl7debian312Notification19WaitForNotificationEv);
  Taking(done, next, done);
}
bool _ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE(
    Notification* done, Duration timeout) {
  NEXT(
      _ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE);
  return Taking(done, next, done, timeout);
}

// --- gRPC: what was done before a call's operations were begun, those who are
// told of their end see. Its C++ gives back a reference for each batch of them,
// just before that.

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                      size_t count, void* tag, void* reserved) {
  NEXT(grpc_call_start_batch);
  // It may call us back before it returns: what is done there is looked at.
  __tsan_release(call);
  return next(call, ops, count, tag, reserved);
}
void grpc_call_unref(grpc_call* call) {
  NEXT(grpc_call_unref);
  __tsan_acquire(call);
  next(call);
}

// And what was done before an alarm was set, those to whom its queue gives it.
bool _Z16grpc_cq_begin_opP21grpc_completion_queuePv(
    grpc_completion_queue* queue, void* tag) {
  NEXT(_Z16grpc_cq_begin_opP21grpc_completion_queuePv);
  __tsan_release(queue);
  return next(queue, tag);
}
grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                      gpr_timespec deadline, void* reserved) {
  NEXT(grpc_completion_queue_next);
  const grpc_event event = next(queue, deadline, reserved);
  __tsan_acquire(queue);
  return event;
}

}  // extern "C"
