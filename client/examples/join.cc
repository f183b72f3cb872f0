// Joins lines by their first field, as Storm's SingleJoinExample joins gender
// and age: rows that become complete, and those that time out.
//
//   join                                 # the example's own data
//   join gender=genders.tsv age=-        # files; - is standard input
#include "timecache/recipes/join.h"

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/examples/example.h"

namespace timecache::examples {
namespace {

constexpr absl::Duration kTtl = absl::Seconds(2);
constexpr int kPeople = 10;
constexpr int kLostAge = 4;

// Where the lines of one source come from.
struct Source {
  std::string name;
  std::unique_ptr<std::istream> owned = {};
  std::istream* lines = nullptr;
};

// Storm's spouts: genders by growing id, ages by falling id. One age is lost.
std::vector<Source> SampleSources() {
  std::string genders;
  std::string ages;
  for (int id = 0; id < kPeople; ++id) {
    genders += std::to_string(id) + (id % 2 == 0 ? "\tmale\n" : "\tfemale\n");
  }
  for (int id = kPeople - 1; id >= 0; --id) {
    if (id == kLostAge) continue;
    ages += std::to_string(id) + "\t" + std::to_string(id + 20) + "\n";
  }
  std::vector<Source> sources(2);
  sources[0].name = "gender";
  sources[0].owned = std::make_unique<std::istringstream>(genders);
  sources[1].name = "age";
  sources[1].owned = std::make_unique<std::istringstream>(ages);
  for (Source& source : sources) source.lines = source.owned.get();
  return sources;
}

absl::StatusOr<std::vector<Source>> OpenSources(
    const std::vector<std::string>& arguments) {
  std::vector<Source> sources;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(argument + ": expected SOURCE=FILE");
    }
    Source source = {.name = argument.substr(0, equals)};
    const std::string path = argument.substr(equals + 1);
    if (path == "-") {
      source.lines = &std::cin;
    } else {
      source.owned = std::make_unique<std::ifstream>(path);
      source.lines = source.owned.get();
      if (!*source.lines) return absl::NotFoundError(path + ": cannot be read");
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

absl::Status Run(const Client& client, const std::vector<Source>& sources) {
  JoinOptions options = {.ttl = kTtl};
  for (const Source& source : sources) options.sources.push_back(source.name);
  const Join join(client, "join-example", options);
  Watcher watcher(client, {.key_prefix = join.key_prefix()});
  if (absl::Status begun = Begin(watcher); !begun.ok()) return begun;

  // A line of each source in turn.
  std::set<std::string> waiting;
  bool more = true;
  while (more) {
    more = false;
    for (const Source& source : sources) {
      std::string line;
      if (!std::getline(*source.lines, line)) continue;
      more = true;
      const size_t tab = line.find('\t');
      if (tab == std::string::npos || tab == 0) continue;
      const std::string id = line.substr(0, tab);
      const auto row = join.Add(id, source.name, line.substr(tab + 1));
      if (!row.ok()) return row.status();
      waiting.insert(id);
      if (!*row) continue;
      waiting.erase(id);
      std::cout << "joined\t" << id;
      for (const std::string& tuple : (*row)->tuples) {
        std::cout << "\t" << tuple;
      }
      std::cout << std::endl;
    }
  }

  // A bucket of the default namespace is 0.3 s.
  if (auto passed = Time(client).Pass(kTtl + absl::Seconds(1)); !passed.ok()) {
    return passed;
  }
  while (!waiting.empty()) {
    const auto batch = watcher.Next(absl::Seconds(30));
    if (!batch.ok()) return batch.status();
    for (const ExpiredEvent& event : batch->events) {
      const auto row = join.Incomplete(event);
      if (!row || waiting.erase(row->id) == 0) continue;
      std::cout << "failed\t" << row->id;
      for (const auto& tuple : row->tuples) {
        std::cout << "\t" << tuple.value_or("-");
      }
      std::cout << std::endl;
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string address = "127.0.0.1:7171";
  std::vector<std::string> arguments;
  CLI::App app("Joins lines ID<tab>VALUE of several sources by their id",
               "join");
  app.add_option("--address", address, "The server's address");
  app.add_option("SOURCE=FILE", arguments,
                 "Where a source's lines are; - is standard input");
  CLI11_PARSE(app, argc, argv);
  absl::StatusOr<std::vector<Source>> sources =
      arguments.empty() ? SampleSources() : OpenSources(arguments);
  if (!sources.ok()) return Exit("join", sources.status());
  return Exit("join", Run(Client(address), *std::move(sources)));
}

}  // namespace
}  // namespace timecache::examples

int main(int argc, char** argv) {
  return timecache::examples::Main(argc, argv);
}
