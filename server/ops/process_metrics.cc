#include "server/ops/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/base/read_file.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

// Fields of /proc/self/stat behind the name, which may hold anything: see
// proc(5), whose numbers are 3 higher.
enum StatField {
  kUserTicks = 11,
  kSystemTicks = 12,
  kThreadCount = 17,
  kStartTicks = 19,
  kVirtualBytes = 20,
  kResidentPages = 21,
  kFields = 22,
};

// Empty where it cannot be read.
std::string ReadProc(const char* path) {
  // /proc/stat has a number for each interrupt line.
  constexpr size_t kMaxBytes = 1 << 20;
  return ReadFile(path, kMaxBytes).value_or("");
}

double ToNumber(absl::string_view text) {
  double number = 0;
  return absl::SimpleAtod(text, &number) ? number : 0;
}

// In seconds since 1970.
double BootTime() {
  for (const absl::string_view line :
       absl::StrSplit(ReadProc("/proc/stat"), '\n')) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (word.first == "btime") return ToNumber(word.second);
  }
  return 0;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](const MetricInfo& info, double value) {
    AddSample({}, value, &families.emplace_back(NewFamily(info)));
  };
  const std::string stat = ReadProc("/proc/self/stat");
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return families;
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(name_end + 2), ' ');
  if (fields.size() >= kFields) {
    const auto number = [&](StatField field) {
      return ToNumber(fields[static_cast<size_t>(field)]);
    };
    static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    static const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    static const double boot_time = BootTime();
    add({"process_cpu_seconds_total", "User and system time of all threads."},
        (number(kUserTicks) + number(kSystemTicks)) / ticks);
    add({"process_resident_memory_bytes",
         "Memory that is not swapped or returned to the system."},
        number(kResidentPages) * page_bytes);
    add({"process_virtual_memory_bytes", "Address space."},
        number(kVirtualBytes));
    add({"process_threads", "Threads."}, number(kThreadCount));
    add({"process_start_time_seconds",
         "When it started, in seconds since 1970."},
        boot_time + number(kStartTicks) / ticks);
  }
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (!error) {
    // The directory itself is open now.
    const auto count = std::distance(begin(fds), end(fds)) - 1;
    add({"process_open_fds", "Open file descriptors."},
        static_cast<double>(count));
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add({"process_max_fds", "Most file descriptors that may be open."},
        static_cast<double>(limit.rlim_cur));
  }
  return families;
}

}  // namespace timecache::server
