// Reads what is going to die, and checks all that is promised of each event.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_LEAD_READER_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_LEAD_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/expiry/expiring_cursor.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {

// Each entry that was there as one of the readers of a map read: by version and
// deadline, its key and value.
using LeadHistory =
    std::map<std::pair<uint64_t, int64_t>, std::pair<std::string, std::string>>;

// A cursor on the harness's map. Every event that it reads must be of the entry
// that is there, alive, with the lead time or less left; one that it shares
// with others, of one that was there as the first of them read it. Those have
// the same `history`, which is not owned.
class LeadReader {
 public:
  LeadReader(MapHarness* harness, int64_t lead_us,
             LeadHistory* history = nullptr)
      : harness_(harness),
        lead_us_(lead_us),
        history_(history == nullptr ? &own_history_ : history),
        cursor_(*harness->map().expiring().Subscribe({.lead_us = lead_us},
                                                     [] {})) {}

  ExpiringCursor& cursor() { return *cursor_; }

  // One Read, unless no round is due.
  std::vector<DeliveredEvent> Read(int64_t max_bytes = 1 << 20);
  // Reads until there is no more; the watermark is then at least where the last
  // round began.
  std::vector<DeliveredEvent> Drain(int64_t max_bytes = 1 << 20);
  // The same, of a round that begins now.
  std::vector<DeliveredEvent> Look(int64_t max_bytes = 1 << 20) {
    cursor_->Refresh();
    return Drain(max_bytes);
  }

  bool more() const { return chunk_.more; }
  const ExpiringCursor::Chunk& chunk() const { return chunk_; }

  // How often each version was told with each of its deadlines.
  using ToldTimes = std::map<std::pair<uint64_t, int64_t>, int>;
  const ToldTimes& told() const { return told_; }
  // Fails the test unless each live entry with the lead time or less left was
  // told for that death. Right after a Look.
  void ExpectAllTold() const;

 private:
  void Check(const ExpiredEvent& event, bool shared, const Scanned& live);

  MapHarness* const harness_;
  const int64_t lead_us_;
  LeadHistory own_history_;
  LeadHistory* const history_;
  const std::unique_ptr<ExpiringCursor> cursor_;
  ExpiringCursor::Chunk chunk_;
  ToldTimes told_;
  // By key, the last death that it was told for.
  std::map<std::string, int64_t> deaths_;
};

// The keys, sorted.
std::vector<std::string> KeysOf(const std::vector<DeliveredEvent>& events);

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_LEAD_READER_H_
