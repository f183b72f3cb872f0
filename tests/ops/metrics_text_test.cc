#include "server/ops/metrics_text.h"

#include <limits>

#include "gtest/gtest.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

TEST(MetricNumberTest, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(MetricNumber(0.524288), "0.524288");
  EXPECT_EQ(MetricNumber(0.524287), "0.524287");
  EXPECT_EQ(MetricNumber(64 / 1e6), "0.000064");
  EXPECT_EQ(MetricNumber(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(MetricNumber(1e-9), "1e-09");
  EXPECT_EQ(MetricNumber(1e300), "1e+300");
}

TEST(MetricNumberTest, IntegersHaveNoExponent) {
  EXPECT_EQ(MetricNumber(0), "0");
  EXPECT_EQ(MetricNumber(-1), "-1");
  EXPECT_EQ(MetricNumber(1e6), "1000000");
  EXPECT_EQ(MetricNumber(1795223455), "1795223455");
  EXPECT_EQ(MetricNumber(1795223455.123), "1795223455.123");
}

TEST(MetricNumberTest, ThereAreNumbersBeyond) {
  EXPECT_EQ(MetricNumber(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(MetricNumber(-std::numeric_limits<double>::infinity()), "-Inf");
  EXPECT_EQ(MetricNumber(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(MetricsTextTest, WritesLabelsSoThatAnyValueIsOneLabel) {
  MetricFamily family = NewFamily({"a", "Of\na\\."}, MetricType::Gauge);
  AddSample({{"x", "1\"2\\3\n4"}, {"y", ""}}, 1, &family);
  AddSample({}, 2, &family);
  EXPECT_EQ(MetricsText({family}),
            "# HELP a Of\\na\\\\.\n# TYPE a gauge\n"
            "a{x=\"1\\\"2\\\\3\\n4\",y=\"\"} 1\na 2\n");
}

TEST(MetricsTextTest, AHistogramEndsWithAllThatWasCounted) {
  MetricFamily family = NewFamily({"h", "Of h."}, MetricType::Histogram);
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label = {{"x", "1"}};
  metric.histogram.sample_count = 3;
  metric.histogram.sample_sum = 1.5;
  metric.histogram.bucket = {{1, 0.000064}, {2, 0.524288}};
  EXPECT_EQ(MetricsText({family}),
            "# HELP h Of h.\n# TYPE h histogram\n"
            "h_count{x=\"1\"} 3\nh_sum{x=\"1\"} 1.5\n"
            "h_bucket{x=\"1\",le=\"0.000064\"} 1\n"
            "h_bucket{x=\"1\",le=\"0.524288\"} 2\n"
            "h_bucket{x=\"1\",le=\"+Inf\"} 3\n");
}

}  // namespace
}  // namespace timecache::server
