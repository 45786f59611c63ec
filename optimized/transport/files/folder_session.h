// A job whose ranks meet in a folder: they need no launcher and no network before they have begun.
#pragma once

#include <filesystem>
#include <memory>

#include "optimized/transport/job_session.h"

namespace ringlab {

struct FolderJob {
  std::filesystem::path folder;  ///< that all ranks see; made when it is not there
  int rank = 0;
  int ranks = 1;
  double timeout_s = 60.0;  ///< a wait longer than this is an error
};

/// Starts a job; blocks until all ranks have come. Its network carries small messages
/// (file_communicator.h). A job that ends well leaves no file behind; a job that failed leaves a
/// folder `job-…` with a note in it, and messages that nobody received.
///
/// Environment errors as FileMeeting's: a file of another run, a folder that cannot be written to,
/// and at the deadline the ranks that did not come. Usage error for a rank that is not below ranks,
/// or a timeout that is not positive.
std::unique_ptr<JobSession> start_in_folder(const FolderJob& job);

}  // namespace ringlab
