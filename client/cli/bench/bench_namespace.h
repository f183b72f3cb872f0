// The namespace that a benchmark makes for itself, so that it neither fills nor
// finds what others work with.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_NAMESPACE_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_NAMESPACE_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/context.h"
#include "timecache/client.h"

namespace timecache::cli {

// Made by the constructor and deleted by the destructor, with all that is in
// it. Not thread-safe.
class BenchNamespace {
 public:
  // `context` must outlive it.
  BenchNamespace(const Context& context, const BenchOptions& options);
  // Says so where it cannot be deleted.
  ~BenchNamespace();
  BenchNamespace(const BenchNamespace&) = delete;
  BenchNamespace& operator=(const BenchNamespace&) = delete;

  // Whether it was made; else why not, and what to do.
  const absl::Status& made() const { return made_; }
  // Unique.
  const std::string& name() const { return name_; }

 private:
  const Context& context_;
  const Client client_;
  const std::string name_;
  absl::Status made_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_NAMESPACE_H_
