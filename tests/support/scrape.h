// The HTTP port of a server in a test, and what its metrics say.

#ifndef TIMECACHED_TESTS_SUPPORT_SCRAPE_H_
#define TIMECACHED_TESTS_SUPPORT_SCRAPE_H_

#include <map>
#include <set>
#include <string>

namespace timecache::test {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// GET of a path from host:port; status 0 if there is no answer.
HttpAnswer HttpGet(const std::string& address, const std::string& path);

// Prometheus' text format, taken apart.
struct Scrape {
  struct Family {
    std::string type;
    std::string help;
    // Without le.
    std::set<std::string> labels;
  };

  std::string text;
  // By name.
  std::map<std::string, Family> families;
  // By name and labels, as they are written.
  std::map<std::string, double> samples;

  // Fails the test, and is -1, if there is no such sample.
  double Value(const std::string& sample) const;
};

Scrape ParseScrape(const std::string& text);
// /metrics of host:port; fails the test if there is no answer.
Scrape ScrapeFrom(const std::string& address);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_SCRAPE_H_
