// The file in which a watch keeps its place: whatever is in it, it is taken or
// refused whole; what was taken is there again after it was written.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/resume_file.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::cli {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fuzz::Require;
  static const std::string& path = *new std::string(
      // Memory: it is synced each time.
      absl::StrCat("/dev/shm/timecached-fuzz-", getpid()));
  {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(data),
               static_cast<std::streamsize>(size));
    Require(file.good(), "the file is written");
  }
  bool taken = false;
  if (auto file = ResumeFile::Open(path, {"default"}); file.ok()) {
    taken = true;
    Require(file->tokens().size() <= 1, "one token of one namespace");
    Require(file->Record("default", "token", absl::UnixEpoch()).ok(),
            "it is written");
  }
  if (taken) {
    auto again = ResumeFile::Open(path, {"default"});
    Require(again.ok(), again.status().ToString());
    Require(again->tokens().at("default") == "token", "it is there again");
  }
  std::filesystem::remove(path);
  return 0;
}

}  // namespace timecache::cli
