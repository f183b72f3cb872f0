// Prints the batches of `watch`.

#ifndef TIMECACHED_CLIENT_CLI_UI_WATCH_PRINTER_H_
#define TIMECACHED_CLIENT_CLI_UI_WATCH_PRINTER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/context.h"
#include "client/cli/watch_arguments.h"
#include "timecache/watch_types.h"

namespace timecache::cli {

// Prints batches to standard output: events as lines or JSON, and other reports
// (losses, a changed log, a reconnection) as JSON there and as a message on
// standard error. Not thread-safe.
class WatchPrinter {
 public:
  // Both must outlive it. `namespaces`: those that are watched.
  WatchPrinter(const Context& context, const WatchArguments& arguments,
               const std::vector<std::string>& namespaces);

  // Prints and flushes. Stops at --count in the middle of a batch, but with a
  // resume file, which cannot say so. False when the output cannot be written.
  bool Print(const WatchBatch& batch);

  // Events of the last batch that were printed, from its beginning on.
  size_t printed_of_batch() const { return printed_of_batch_; }

  // Whether --count or --until-watermark is reached.
  bool IsDone() const;

  // A watch that stands breaks once, however many attempts then fail.
  void PrintBreak(const absl::Status& why);

 private:
  template <typename Event>
  bool PrintEvents(const std::vector<Event>& events);
  bool PrintEvent(const ExpiredEvent& event);
  bool PrintEvent(const ChangeEvent& change);
  bool PrintWatermark(const WatchBatch& batch);
  bool PrintLost(const WatchBatch& batch);
  bool PrintReconnected(const WatchBatch& batch);
  bool PrintLogChanged(const WatchBatch& batch);

  const Context& context_;
  const WatchArguments& arguments_;
  std::map<std::string, absl::Time> watermarks_;
  uint64_t printed_ = 0;
  size_t printed_of_batch_ = 0;
  bool in_break_ = false;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_WATCH_PRINTER_H_
