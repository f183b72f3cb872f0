#include "client/cli/bench/bench_namespace.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace timecache::cli {
namespace {

// What is put before a measurement is there until its end.
constexpr absl::Duration kFilledTtl = absl::Hours(1);
// The server's default for the largest value.
constexpr size_t kDefaultMaxValueBytes = 1 << 20;

std::string UniqueName() {
  std::random_device random;
  return absl::StrFormat("bench-%08x%08x", random(), random());
}

NamespaceOptions OptionsFor(const BenchOptions& bench) {
  NamespaceOptions options;
  if (bench.ttl) {
    options.ttl = *bench.ttl;
  } else if (bench.fill) {
    options.ttl = kFilledTtl;
  }
  if (bench.value_bytes > kDefaultMaxValueBytes) {
    options.max_value_bytes = static_cast<uint32_t>(bench.value_bytes);
  }
  return options;
}

}  // namespace

BenchNamespace::BenchNamespace(const Context& context,
                               const BenchOptions& options)
    : context_(context), client_(context.MakeClient()), name_(UniqueName()) {
  const auto ns = client_.CreateNamespace(name_, OptionsFor(options));
  made_ = ns.status();
  if (absl::IsPermissionDenied(made_) || absl::IsResourceExhausted(made_)) {
    made_ = absl::Status(
        made_.code(),
        absl::StrCat("bench cannot create a namespace of its own (",
                     made_.message(),
                     "): name one that it may fill with --namespace"));
  }
}

BenchNamespace::~BenchNamespace() {
  if (!made_.ok()) return;
  const absl::Status deleted = client_.DeleteNamespace(name_);
  if (deleted.ok() || absl::IsNotFound(deleted)) return;
  Warn(absl::StrCat("the benchmark's namespace still exists (",
                    context_.Explain(deleted),
                    "); delete it with: timecachectl ns delete ", name_));
}

}  // namespace timecache::cli
