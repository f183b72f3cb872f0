#include "tests/support/scrape.h"

#include <cstdlib>
#include <regex>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "httplib.h"

namespace timecache::test {
namespace {

constexpr int kPatienceSeconds = 60;

// The family of a sample: without what histograms add to its name.
std::string FamilyOf(const Scrape& scrape, std::string name) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    if (!absl::EndsWith(name, suffix)) continue;
    const std::string stem = name.substr(0, name.size() - strlen(suffix));
    if (scrape.families.contains(stem)) return stem;
  }
  return name;
}

}  // namespace

HttpAnswer HttpGet(const std::string& address, const std::string& path) {
  httplib::Client client("http://" + address);
  client.set_connection_timeout(kPatienceSeconds);
  client.set_read_timeout(kPatienceSeconds);
  const httplib::Result result = client.Get(path);
  if (!result) return {};
  return {result->status, result->body};
}

double Scrape::Value(const std::string& sample) const {
  const auto it = samples.find(sample);
  if (it != samples.end()) return it->second;
  ADD_FAILURE() << "no sample " << sample;
  return -1;
}

Scrape ParseScrape(const std::string& text) {
  static const std::regex label("([a-z_]+)=\"");
  Scrape scrape;
  scrape.text = text;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (words[0] == "#") {
      Scrape::Family& family = scrape.families[words[2]];
      (words[1] == "HELP" ? family.help : family.type) = words[3];
      continue;
    }
    const size_t space = line.rfind(' ');
    const std::string sample(line.substr(0, space));
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    EXPECT_TRUE(scrape.samples.emplace(sample, value).second)
        << "twice: " << line;
    const std::string name = sample.substr(0, sample.find('{'));
    const auto family = scrape.families.find(FamilyOf(scrape, name));
    if (family == scrape.families.end()) {
      ADD_FAILURE() << "without HELP and TYPE: " << line;
      continue;
    }
    for (std::sregex_iterator it(sample.begin(), sample.end(), label), end;
         it != end; ++it) {
      if ((*it)[1] != "le") family->second.labels.insert((*it)[1]);
    }
  }
  return scrape;
}

Scrape ScrapeFrom(const std::string& address) {
  const HttpAnswer answer = HttpGet(address, "/metrics");
  EXPECT_EQ(answer.status, 200);
  return ParseScrape(answer.body);
}

}  // namespace timecache::test
