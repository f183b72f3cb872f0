#include "server/peer/event_fields.h"

#include <cstddef>
#include <utility>

namespace timecache::server {
namespace {

void WriteBatch(const EventBatch& batch, absl::string_view events,
                FieldWriter* to) {
  (*to)(EncodedBatch{batch.death(), events});
}

bool ReadBatch(absl::string_view name, FieldReader* from,
               std::shared_ptr<const EventBatch>* batch) {
  EncodedBatch encoded;
  (*from)(encoded);
  if (!from->ok()) return false;
  *batch = EventBatch::FromEncoded(name, encoded.death, encoded.events);
  return *batch != nullptr;
}

// The events of deliveries of one batch, one after the other, make a batch of
// their own, which the deliveries then share. `delivery_of(i)` is that of number
// i, and may be the same object each time.
template <typename DeliveryOf>
void WriteDeliveries(size_t count, const DeliveryOf& delivery_of,
                     FieldWriter* to) {
  (*to)(count);
  for (size_t begin = 0; begin < count;) {
    const Delivery& first = delivery_of(begin);
    std::string events;
    size_t end = begin;
    for (; end < count && delivery_of(end).batch == first.batch; ++end) {
      const absl::string_view event =
          first.batch->encoded(delivery_of(end).index);
      events.append(event.data(), event.size());
    }
    (*to)(end - begin);
    WriteBatch(*first.batch, events, to);
    for (; begin < end; ++begin) (*to)(delivery_of(begin));
  }
}

// Calls `add` with each.
template <typename Add>
bool ReadDeliveries(absl::string_view name, FieldReader* from, const Add& add) {
  size_t left = 0;
  if (!from->ReadCount(&left)) return false;
  while (left > 0) {
    size_t run = 0;
    std::shared_ptr<const EventBatch> batch;
    if (!from->ReadCount(&run) || !ReadBatch(name, from, &batch)) return false;
    if (run == 0 || run > left || batch->size() != static_cast<int>(run)) {
      return false;
    }
    left -= run;
    for (size_t i = 0; i < run; ++i) {
      Delivery delivery;
      delivery.batch = batch;
      delivery.index = static_cast<int>(i);
      (*from)(delivery);
      add(std::move(delivery));
    }
  }
  return from->ok();
}

}  // namespace

void WriteChunk(const PeerChunk& chunk, FieldWriter* to) {
  const EventChunk& events = chunk.chunk;
  (*to)(events, events.batches.size());
  for (const auto& batch : events.batches) {
    WriteBatch(*batch, batch->encoded(), to);
  }
  WriteDeliveries(
      events.deliveries.size(),
      [&](size_t i) -> const Delivery& { return events.deliveries[i]; }, to);
  (*to)(chunk.why_closed);
  to->Flags(chunk.answers, chunk.notice, chunk.may_have);
  (*to)(chunk.held, chunk.refresh);
}

bool ReadChunk(absl::string_view name, FieldReader* from, PeerChunk* chunk) {
  EventChunk& events = chunk->chunk;
  size_t batches = 0;
  (*from)(events);
  if (!from->ReadCount(&batches)) return false;
  for (size_t i = 0; i < batches; ++i) {
    if (!ReadBatch(name, from, &events.batches.emplace_back())) return false;
  }
  if (!ReadDeliveries(name, from, [&](Delivery delivery) {
        events.deliveries.push_back(std::move(delivery));
      })) {
    return false;
  }
  (*from)(chunk->why_closed);
  from->Flags(chunk->answers, chunk->notice, chunk->may_have);
  (*from)(chunk->held, chunk->refresh);
  return from->ok() && events.shared <= events.batches.size();
}

void WriteUnsettled(const UnsettledPage& page, FieldWriter* to) {
  WriteDeliveries(
      page.events.size(),
      [&](size_t i) -> const Delivery& { return page.events[i].delivery; }, to);
  (*to)(page.events, page.next, page.next_partition);
}

bool ReadUnsettled(absl::string_view name, FieldReader* from,
                   UnsettledPage* page) {
  std::vector<Delivery> deliveries;
  if (!ReadDeliveries(name, from, [&](Delivery delivery) {
        deliveries.push_back(std::move(delivery));
      })) {
    return false;
  }
  (*from)(page->events, page->next, page->next_partition);
  if (!from->ok() || page->events.size() != deliveries.size()) return false;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    page->events[i].delivery = std::move(deliveries[i]);
  }
  return true;
}

}  // namespace timecache::server
