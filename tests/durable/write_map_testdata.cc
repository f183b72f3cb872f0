// write_map_testdata DIRECTORY [trimmed|retained|changed]: makes a journal of this
// version there, and beside it DIRECTORY.txt, which says what a server that
// recovers it has. How the directories in testdata were made, which are never
// made again: a version that writes another format adds directories of its own.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "tests/durable/map_testdata.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

int Main(int argc, char** argv) {
  const std::map<std::string, Filling> fillings = {
      {"", Filling::kAll},
      {"trimmed", Filling::kTrimmed},
      {"retained", Filling::kRetained},
      {"changed", Filling::kChanged}};
  const auto filling = fillings.find(argc == 3 ? argv[2] : "");
  if (argc < 2 || argc > 3 || filling == fillings.end()) {
    std::cerr << "usage: write_map_testdata DIRECTORY "
                 "[trimmed|retained|changed]\n";
    return 2;
  }
  const std::string directory = argv[1];
  DurableStore store;
  store.UseDirectory(directory);
  store.options().segment_bytes = 4 << 10;
  store.checkpointer_options().min_journal_bytes = 1;
  store.checkpointer_options().factor = 0;
  store.checkpointer_options().step_entries = 7;
  if (const absl::Status status = store.Open(); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  if (!FillStore(filling->second, &store)) {
    std::cerr << "an answer was not as it should be\n";
    return 1;
  }
  store.Close();
  // What a server has that recovers it: of a copy, which it changes.
  const TemporaryDirectory copy;
  std::filesystem::copy(directory, copy.path() + "/journal");
  DurableStore again;
  again.UseDirectory(copy.path() + "/journal");
  if (const absl::Status status = again.Open(); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  again.clock().AdvanceTo(again.report().last_us);
  again.AdvanceBy(0);
  std::ofstream(directory + ".txt") << DescribeStore(&again);
  return 0;
}

}  // namespace
}  // namespace timecache::server

int main(int argc, char** argv) { return timecache::server::Main(argc, argv); }
