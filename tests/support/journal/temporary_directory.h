#ifndef TIMECACHED_TESTS_SUPPORT_JOURNAL_TEMPORARY_DIRECTORY_H_
#define TIMECACHED_TESTS_SUPPORT_JOURNAL_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace timecache::server {

// A real directory, empty, until it is destroyed. In memory where the system
// has a file system for that: a kill takes nothing from either, and syncs are
// fast.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    for (const std::string& parent :
         {std::string("/dev/shm"),
          std::filesystem::temp_directory_path().string()}) {
      std::string name = parent + "/journal_XXXXXX";
      if (mkdtemp(name.data()) != nullptr) {
        path_ = name;
        return;
      }
    }
    std::abort();
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_JOURNAL_TEMPORARY_DIRECTORY_H_
