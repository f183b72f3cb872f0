// Filters that watches share.

#include "server/rpc/watch/event_filters.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using BatchRef = EventFilter::BatchRef;

BatchRef NewBatch(int events, size_t value_bytes = 1) {
  auto batch = std::make_shared<EventBatch>("map", Death{2'000'000, 2'000'000});
  const std::string value(value_bytes, 'v');
  for (int i = 0; i < events; ++i) {
    const std::string key = absl::StrCat(i % 2 == 0 ? "even" : "odd", i);
    batch->Add({key, value, static_cast<uint64_t>(i + 1), 1, 1'000'000});
  }
  batch->ShrinkToFit();
  return batch;
}

TEST(EventFiltersTest, EqualFiltersAreOne) {
  EventFilters filters;
  const auto first = filters.Find("even", false);
  EXPECT_EQ(filters.Find("even", false), first);
  EXPECT_NE(filters.Find("even", true), first);
  EXPECT_NE(filters.Find("eve", false), first);
  EXPECT_EQ(filters.GetStatistics().filters, 1u);
}

TEST(EventFiltersTest, ABatchIsFilteredOnceForAllThatShareTheFilter) {
  EventFilters filters;
  const auto first = filters.Find("even", true);
  const auto second = filters.Find("even", true);
  const BatchRef batch = NewBatch(10);
  const PassedEvents passed = first->Apply(batch);
  ASSERT_EQ(passed->size(), 5);
  EXPECT_EQ(passed->event(0).key, "even0");
  EXPECT_EQ(passed->event(0).value, "");
  EXPECT_EQ(second->Apply(batch).batch, passed.batch);
  EXPECT_EQ(filters.GetStatistics().filtered, 1u);
  EXPECT_EQ(filters.GetStatistics().found, 1u);
}

TEST(EventFiltersTest, WhatLetsAllPassGivesTheBatchItself) {
  EventFilters filters;
  const auto first = filters.Find("", false);
  const auto second = filters.Find("", false);
  const BatchRef batch = NewBatch(3);
  EXPECT_EQ(first->Apply(batch).batch, batch);
  EXPECT_EQ(filters.GetStatistics().results, 0u);
}

TEST(EventFiltersTest, AFilterOfOneWatchKeepsNothing) {
  EventFilters filters;
  const auto filter = filters.Find("even", false);
  EXPECT_EQ(filter->Apply(NewBatch(10))->size(), 5);
  EXPECT_EQ(filters.GetStatistics().results, 0u);
}

TEST(EventFiltersTest, ABatchAtTheAddressOfOneThatIsGoneIsAnother) {
  EventFilters filters;
  const auto first = filters.Find("even", false);
  const auto second = filters.Find("even", false);
  for (int events = 1; events < 50; ++events) {
    EXPECT_EQ(first->Apply(NewBatch(events))->size(), (events + 1) / 2);
  }
}

TEST(EventFiltersTest, ResultsAreBounded) {
  EventFilters filters;
  const auto first = filters.Find("even", false);
  const auto second = filters.Find("even", false);
  std::vector<BatchRef> batches;
  for (int i = 0; i < 40; ++i) {
    batches.push_back(NewBatch(2, 900 << 10));
    first->Apply(batches.back());
    EXPECT_LE(filters.GetStatistics().bytes, EventFilters::kMaxBytes);
  }
  const EventFilters::Statistics statistics = filters.GetStatistics();
  EXPECT_GT(statistics.results, 10u);
  EXPECT_LT(statistics.results, 30u);
  // The oldest went first.
  second->Apply(batches.back());
  EXPECT_EQ(filters.GetStatistics().found, 1u);
  second->Apply(batches.front());
  EXPECT_EQ(filters.GetStatistics().found, 1u);
}

}  // namespace
}  // namespace timecache::server
