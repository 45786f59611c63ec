// A meeting of ranks that see one folder, before there is a network between them.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace ringlab {

struct FileMeetingPlace {
  std::filesystem::path folder;  ///< the same for all ranks; must exist
  std::string name;              ///< of this meeting; several may share a folder
  std::string run;               ///< the same for all ranks, another one for every run: one line
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds deadline{60000};  ///< to wait for the others
};

/// One file per rank, written under a temporary name and renamed when complete, so that nobody
/// reads half of one. The own file is removed with this object: keep it until all ranks have met.
class FileMeeting {
 public:
  explicit FileMeeting(FileMeetingPlace place);
  ~FileMeeting();
  FileMeeting(const FileMeeting&) = delete;
  FileMeeting& operator=(const FileMeeting&) = delete;

  /// Called once. An environment error when a file is there from another run, or already there from
  /// this rank, when it cannot be written, and at the deadline: it names the ranks that did not
  /// come.
  std::vector<std::string> tell_all(const std::string& mine);

 private:
  std::filesystem::path file_of(int rank) const;
  std::string header() const;
  void write(const std::string& mine);
  /// False when it is not there yet.
  bool read(int rank, std::string& text) const;

  const FileMeetingPlace place_;
  bool has_written_ = false;
};

}  // namespace ringlab
