// Whole files: reading, and writing so that a reader of a regular file sees the old one or the new one, never half of it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace deltagauge::reports {

std::string read_file(const std::string& path);  // throws Error with the path and the reason
// A regular file, or one that is not there yet, is written beside its place and renamed; links are followed, and stay.
// Anything else (a device, a FIFO, /dev/stdout) is opened and written. Throws Error with the path and the reason.
void write_file(const std::string& path, std::string_view content);
void append_file(const std::string& path, std::string_view content);  // at the end, in one write; throws Error
void require_writable_file(const std::string& path);                  // before there is content; throws Error
void require_writable_directory(const std::string& path);             // makes it when missing; throws Error

struct Output {
  std::string flag, path;  // what asked for it, for messages
};
// Throws Error when one of the files to write is a file that is read, another one, or the folder of another one. Links are
// followed. A device or a FIFO may stand more than once: it is not replaced.
void require_apart(const std::vector<Output>& written, const std::vector<std::string>& read);

}  // namespace deltagauge::reports
