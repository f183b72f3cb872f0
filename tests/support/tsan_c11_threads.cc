// C11's threads by those of POSIX, which the thread sanitizer knows.
//
// librdkafka starts its threads by thrd_create, of which clang 14's sanitizer knows
// nothing: it ends the process at the first access. To glibc both are the same.
// Part of all programs of the build with the thread sanitizer, and of no other.

#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>

namespace {

struct Started {
  thrd_start_t run;
  void* argument;
};

void* RunStarted(void* started) {
  const Started copy = *static_cast<Started*>(started);
  delete static_cast<Started*>(started);
  return reinterpret_cast<void*>(intptr_t{copy.run(copy.argument)});
}

pthread_mutex_t* Posix(mtx_t* mutex) {
  static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t));
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* Posix(cnd_t* condition) {
  static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t));
  return reinterpret_cast<pthread_cond_t*>(condition);
}

int C11(int error) {
  if (error == 0) return thrd_success;
  return error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
  auto* const started = new Started{run, argument};
  const int error = pthread_create(thread, nullptr, &RunStarted, started);
  if (error != 0) delete started;
  return C11(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* returned = nullptr;
  const int error = pthread_join(thread, &returned);
  if (result != nullptr) {
    *result = static_cast<int>(reinterpret_cast<intptr_t>(returned));
  }
  return C11(error);
}

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, (type & mtx_recursive) != 0
                                             ? PTHREAD_MUTEX_RECURSIVE
                                             : PTHREAD_MUTEX_NORMAL);
  const int error = pthread_mutex_init(Posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return C11(error);
}

void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(Posix(mutex)); }
int mtx_lock(mtx_t* mutex) { return C11(pthread_mutex_lock(Posix(mutex))); }
int mtx_unlock(mtx_t* mutex) { return C11(pthread_mutex_unlock(Posix(mutex))); }

int cnd_init(cnd_t* condition) {
  return C11(pthread_cond_init(Posix(condition), nullptr));
}
void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(Posix(condition)); }
int cnd_signal(cnd_t* condition) {
  return C11(pthread_cond_signal(Posix(condition)));
}
int cnd_broadcast(cnd_t* condition) {
  return C11(pthread_cond_broadcast(Posix(condition)));
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return C11(pthread_cond_wait(Posix(condition), Posix(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  return C11(pthread_cond_timedwait(Posix(condition), Posix(mutex), deadline));
}

}  // extern "C"
