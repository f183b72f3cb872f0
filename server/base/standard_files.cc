// Opens the descriptors 0, 1 and 2 of a process that was started without them.
//
// A connection must not get the number of a standard file that the parent
// process has closed: what is then printed or logged would go to its peer. What
// is written to a file that was missing is an error, as before.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// System calls themselves: sanitizers, whose functions stand before those of
// the C library, may not be ready.
void OpenStandardFiles() {
  for (int fd = 0; fd <= 2; ++fd) {
    // Takes the lowest free number.
    if (syscall(SYS_fcntl, fd, F_GETFD) < 0) {
      syscall(SYS_openat, AT_FDCWD, "/dev/null", fd == 0 ? O_WRONLY : O_RDONLY,
              0);
    }
  }
}

// Before the constructors of libraries: gRPC's open files.
__attribute__((section(".preinit_array"),
               used)) void (*const open_first)() = OpenStandardFiles;

}  // namespace
