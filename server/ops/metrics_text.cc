#include "server/ops/metrics_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "prometheus/client_metric.h"

namespace timecache::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Integers up to here are doubles.
constexpr double kMaxExactInteger = 9007199254740992.0;
// Smaller values are written with an exponent.
constexpr double kLeastPlain = 1e-6;

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    default:
      return "untyped";
  }
}

// name{label="value",...} value; `le` goes behind the labels, unless empty.
void AddLine(const MetricFamily& family, const char* suffix,
             const ClientMetric& metric, const std::string& le, double value,
             std::string* text) {
  absl::StrAppend(text, family.name, suffix);
  const char* separator = "{";
  const auto label = [&](const std::string& name, const std::string& text_of) {
    absl::StrAppend(
        text, separator, name, "=\"",
        absl::StrReplaceAll(text_of,
                            {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}}),
        "\"");
    separator = ",";
  };
  for (const ClientMetric::Label& each : metric.label) {
    label(each.name, each.value);
  }
  if (!le.empty()) label("le", le);
  if (*separator == ',') absl::StrAppend(text, "}");
  absl::StrAppend(text, " ", MetricNumber(value), "\n");
}

void AddHistogram(const MetricFamily& family, const ClientMetric& metric,
                  std::string* text) {
  const ClientMetric::Histogram& histogram = metric.histogram;
  const auto count = static_cast<double>(histogram.sample_count);
  AddLine(family, "_count", metric, "", count, text);
  AddLine(family, "_sum", metric, "", histogram.sample_sum, text);
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    AddLine(family, "_bucket", metric, MetricNumber(bucket.upper_bound),
            static_cast<double>(bucket.cumulative_count), text);
  }
  AddLine(family, "_bucket", metric, "+Inf", count, text);
}

}  // namespace

std::string MetricNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  // An integer as it is, not as 1e+06.
  if (std::abs(value) < kMaxExactInteger && value == std::trunc(value)) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  char digits[32];
  // 0.000016, not 1.6e-05.
  const bool plain =
      std::abs(value) >= kLeastPlain && std::abs(value) < kMaxExactInteger;
  const auto end = plain
                       ? std::to_chars(digits, digits + sizeof(digits), value,
                                       std::chars_format::fixed)
                       : std::to_chars(digits, digits + sizeof(digits), value);
  return std::string(digits, end.ptr);
}

std::string MetricsText(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    absl::StrAppend(
        &text, "# HELP ", family.name, " ",
        absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}}),
        "\n# TYPE ", family.name, " ", TypeName(family.type), "\n");
    for (const ClientMetric& metric : family.metric) {
      switch (family.type) {
        case MetricType::Histogram:
          AddHistogram(family, metric, &text);
          break;
        case MetricType::Counter:
          AddLine(family, "", metric, "", metric.counter.value, &text);
          break;
        default:
          AddLine(family, "", metric, "", metric.gauge.value, &text);
          break;
      }
    }
  }
  return text;
}

}  // namespace timecache::server
