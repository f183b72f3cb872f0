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
#include "server/main/system_memory.h"

namespace timecache::server {

std::string ReadSystemFile(const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 10;
  return std::string(
      absl::StripAsciiWhitespace(ReadFile(path, kMaxBytes).value_or("")));
}

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

namespace {

int64_t LimitOf(int resource, bool hard) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return 0;
  }
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? INT64_MAX : static_cast<int64_t>(value);
}

int64_t ToNumber(const std::string& text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
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

Machine ReadMachine(const std::string& root) {
  Machine machine;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    machine.cores = CPU_COUNT(&cores);
  }
  machine.cpu_quota_cores = QuotaCores(root);
  machine.memory_bytes = AvailableMemoryBytes(MemorySources{root, 0});
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
