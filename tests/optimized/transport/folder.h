// A folder that goes with the test.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace ringlab {

class Folder {
 public:
  Folder() {
    static std::atomic<int> made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("ringlab_folder_" + std::to_string(::getpid()) + "_" + std::to_string(made++));
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace ringlab
