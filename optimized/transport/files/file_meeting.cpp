#include "optimized/transport/files/file_meeting.h"

#include <unistd.h>

#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "optimized/transport/files/folder_file.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr std::chrono::milliseconds kPause{5};
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;

[[noreturn]] void refuse_stale(const std::filesystem::path& file, const std::string& found) {
  throw_environment_error({.where = file.string(),
                           .expected = "a folder without files of other runs",
                           .actual = found,
                           .hint = "Remove it, or give every run a folder of its own"});
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

FileMeeting::FileMeeting(FileMeetingPlace place) : place_(std::move(place)) {
  const bool fits = place_.rank >= 0 && place_.rank < place_.ranks && !place_.name.empty() &&
                    place_.run.find('\n') == std::string::npos;
  if (fits) return;
  throw_usage_error({.where = "meeting of rank " + std::to_string(place_.rank),
                     .expected = "a rank below " + std::to_string(place_.ranks) +
                                 ", a name, and a run in one line",
                     .actual = "name \"" + place_.name + "\", run \"" + place_.run + "\""});
}

FileMeeting::~FileMeeting() {
  std::error_code ignored;
  // Others' files are theirs to remove.
  if (has_written_) std::filesystem::remove(file_of(place_.rank), ignored);
}

std::filesystem::path FileMeeting::file_of(int rank) const {
  return place_.folder / (place_.name + "." + std::to_string(rank));
}

std::string FileMeeting::header() const {
  // Run and ranks: a file of another run, or of a job of another size, is told from this one's.
  return "ringlab run " + place_.run + ", " + std::to_string(place_.ranks) + " ranks";
}

void FileMeeting::write(const std::string& mine) {
  const std::filesystem::path file = file_of(place_.rank);
  // A run before this one may have been killed: what it left would be read
  // by others as this rank's.
  if (FolderFile::open(file)) refuse_stale(file, "one that this rank did not write");
  std::filesystem::path part = file;
  part += ".part" + std::to_string(::getpid());  // two processes that take themselves for one rank
  const std::string text = header() + '\n' + mine;
  write_folder_file(part, file, std::as_bytes(std::span(text)),
                    "rank " + std::to_string(place_.rank));
  has_written_ = true;
}

bool FileMeeting::read(int rank, std::string& text) const {
  const std::optional<FolderFile> file = FolderFile::open(file_of(rank));
  if (!file) return false;
  text = file->text(kMostBytes);
  const std::string found = first_line(text);
  if (found != header()) refuse_stale(file_of(rank), "\"" + found.substr(0, 80) + "\"");
  text.erase(0, found.size() + 1);  // without the line break
  return true;
}

std::vector<std::string> FileMeeting::tell_all(const std::string& mine) {
  const auto begin = std::chrono::steady_clock::now();
  write(mine);
  std::vector<std::string> texts(static_cast<std::size_t>(place_.ranks));
  // Texts that were heard are not read again: their files may go as soon as all have met.
  std::vector<bool> heard(texts.size());
  while (true) {
    std::string missing;
    for (int rank = 0; rank < place_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (!heard[at]) heard[at] = read(rank, texts[at]);
      if (!heard[at]) missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    if (missing.empty()) return texts;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (elapsed >= place_.deadline) {
      throw RankError({.rank = place_.rank,
                       .operation = "meet in " + place_.folder.string(),
                       .reason = "no file of " + missing,
                       .elapsed_s = elapsed.count()});
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace ringlab
