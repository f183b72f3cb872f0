#include "server/main/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/read_file.h"

namespace timecache::server {
namespace {

// Of the kernel, without white space around it; empty if it cannot be read.
std::string ReadSystemFile(const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 10;
  return std::string(
      absl::StripAsciiWhitespace(ReadFile(path, kMaxBytes).value_or("")));
}

// The directories of the group that `controller` has this process in, and of
// all groups above it, whose limits hold as well: of version 2, and of version
// 1 where that has the controller. In a container the path may be the host's,
// and not be there: then the first directory is the container's own.
std::vector<std::string> ControlGroupDirectories(const std::string& root,
                                                 absl::string_view controller) {
  const std::string mount = root + "/sys/fs/cgroup";
  const std::string text = ReadSystemFile(root + "/proc/self/cgroup");
  std::vector<std::string> directories;
  // Lines are hierarchy:controllers:path; that of version 2 names no
  // controller.
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      directories.push_back(mount);
    } else if (absl::c_linear_search(names, controller)) {
      directories.push_back(absl::StrCat(mount, "/", controller));
    } else {
      continue;
    }
    for (const absl::string_view part :
         absl::StrSplit(parts[2], '/', absl::SkipEmpty())) {
      directories.push_back(absl::StrCat(directories.back(), "/", part));
    }
  }
  return directories;
}

int64_t LimitOf(int resource, bool hard) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return 0;
  }
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return static_cast<int64_t>(std::min<rlim_t>(value, INT64_MAX));
}

int64_t ToNumber(const std::string& text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

int64_t MemTotal(const std::string& root) {
  const std::string text = ReadSystemFile(root + "/proc/meminfo");
  for (absl::string_view rest : absl::StrSplit(text, '\n')) {
    int64_t kib;
    if (absl::ConsumePrefix(&rest, "MemTotal:") &&
        absl::ConsumeSuffix(&rest, "kB") && absl::SimpleAtoi(rest, &kib)) {
      return kib * 1024;
    }
  }
  return 0;
}

// The smaller of two limits, either of which may be 0: none.
int64_t Least(int64_t a, int64_t b) {
  return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
}

int64_t ControlGroupBytes(const std::string& root) {
  int64_t least = 0;
  for (const std::string& group : ControlGroupDirectories(root, "memory")) {
    // Of version 2 and of version 1: a number, or "max".
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      least = Least(least, ToNumber(ReadSystemFile(group + file)));
    }
  }
  return least;
}

// "150000 100000" or "max 100000": microseconds of CPU in each period.
double QuotaCores(const std::string& root) {
  double least = 0;
  for (const std::string& group : ControlGroupDirectories(root, "cpu")) {
    std::string text = ReadSystemFile(group + "/cpu.max");
    if (text.empty()) {
      text = absl::StrCat(ReadSystemFile(group + "/cpu.cfs_quota_us"), " ",
                          ReadSystemFile(group + "/cpu.cfs_period_us"));
    }
    const std::vector<std::string> parts = absl::StrSplit(text, ' ');
    if (parts.size() != 2) continue;
    const int64_t quota_us = ToNumber(parts[0]);
    const int64_t period_us = ToNumber(parts[1]);
    if (quota_us <= 0 || period_us <= 0) continue;
    const double cores =
        static_cast<double>(quota_us) / static_cast<double>(period_us);
    least = least > 0 ? std::min(least, cores) : cores;
  }
  return least;
}

// "always [madvise] never": the one in brackets.
std::string HugePages(const std::string& root) {
  const std::string text =
      ReadSystemFile(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!absl::StartsWith(word, "[")) continue;
    return std::string(absl::StripSuffix(absl::StripPrefix(word, "["), "]"));
  }
  return "";
}

}  // namespace

int64_t Machine::memory_bytes() const {
  return Least(Least(total_bytes, control_group_bytes), address_space_bytes);
}

Machine ReadMachine(const std::string& root) {
  Machine machine;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    machine.cores = CPU_COUNT(&cores);
  }
  machine.cpu_quota_cores = QuotaCores(root);
  machine.total_bytes = MemTotal(root);
  machine.control_group_bytes = ControlGroupBytes(root);
  const int64_t address_space = LimitOf(RLIMIT_AS, false);
  machine.address_space_bytes = address_space == INT64_MAX ? 0 : address_space;
  machine.open_files = LimitOf(RLIMIT_NOFILE, false);
  machine.open_files_max = LimitOf(RLIMIT_NOFILE, true);
  machine.transparent_huge_pages = HugePages(root);
  machine.now_us = absl::ToUnixMicros(absl::Now());
  return machine;
}

void RaiseOpenFiles() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // If it is refused, the check of the limit reports it.
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace timecache::server
