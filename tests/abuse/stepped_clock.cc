// A time of day that is set while a process runs, without the machine's being
// set. Preloaded, it adds the seconds that the file in STEPPED_CLOCK says (a
// signed 64-bit number) to CLOCK_REALTIME. Waits until a time of day end by
// that time, as the kernel's do when its clock is set: libfaketime instead
// moves their end along.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

namespace {

// How soon a wait notices that the clock was set.
constexpr int64_t kSliceNs = 50'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;

const volatile int64_t* offset_s = nullptr;

__attribute__((constructor)) void Map() {
  const char* path = getenv("STEPPED_CLOCK");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* const page =
      mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) offset_s = static_cast<const int64_t*>(page);
}

// The C library's own.
template <typename Function>
Function* Real(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int RealClock(clockid_t clock, timespec* now) {
  static auto* const real = Real(&clock_gettime, "clock_gettime");
  return real(clock, now);
}

// The end of the next slice of a wait until this time of day, by the kernel's
// clock; false if the wait is over.
bool NextSlice(const timespec& until, timespec* slice) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t left_ns =
      (until.tv_sec - now.tv_sec) * kSecondNs + (until.tv_nsec - now.tv_nsec);
  if (left_ns <= 0) return false;
  RealClock(CLOCK_REALTIME, slice);
  const int64_t end_ns = slice->tv_nsec + std::min(left_ns, kSliceNs);
  slice->tv_sec += end_ns / kSecondNs;
  slice->tv_nsec = end_ns % kSecondNs;
  return true;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = RealClock(clock, now);
  if (clock == CLOCK_REALTIME && offset_s != nullptr) now->tv_sec += *offset_s;
  return result;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1'000;
  return 0;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  static auto* const real =
      Real(&pthread_cond_timedwait, "pthread_cond_timedwait");
  timespec slice;
  while (NextSlice(*until, &slice)) {
    const int result = real(condition, mutex, &slice);
    if (result != ETIMEDOUT) return result;
  }
  return ETIMEDOUT;
}

// Abseil waits by futexes of its own.
long syscall(long number, ...) noexcept {  // NOLINT: its type
  static auto* const real = Real(&syscall, "syscall");
  long a[6];  // NOLINT
  va_list arguments;
  va_start(arguments, number);
  for (long& each : a) each = va_arg(arguments, long);  // NOLINT
  va_end(arguments);
  const auto* const until = reinterpret_cast<const timespec*>(a[3]);
  if (number != SYS_futex || (a[1] & FUTEX_CLOCK_REALTIME) == 0 ||
      until == nullptr) {
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  timespec slice;
  while (NextSlice(*until, &slice)) {
    const auto result = real(number, a[0], a[1], a[2], &slice, a[4], a[5]);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
  errno = ETIMEDOUT;
  return -1;
}

}  // extern "C"
