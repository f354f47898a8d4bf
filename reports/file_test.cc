#include "reports/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/error.h"

namespace deltagauge::reports {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string complaint(const std::string& path) const {
    try {
      write_file(path, "x");
    } catch (const Error& e) {
      return e.what();
    }
    return "written";
  }

 private:
  std::string folder_ = testing::TempDir() + "files_" + std::to_string(::getpid());
};

TEST_F(Files, are_replaced_whole_and_leave_nothing_beside_them) {
  write_file(at("a"), "old");
  ::chmod(at("a").c_str(), 0600);
  write_file(at("a"), "new");
  EXPECT_EQ(read_file(at("a")), "new");
  EXPECT_EQ(fs::status(at("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, behind_links_are_written_and_the_links_stay) {
  write_file(at("a"), "old");
  fs::create_symlink("a", at("link"));
  fs::create_symlink("none", at("dangling"));
  fs::create_symlink("dangling", at("second"));
  write_file(at("link"), "new");
  write_file(at("second"), "made");
  EXPECT_TRUE(fs::is_symlink(at("link")) && fs::is_symlink(at("dangling")) && fs::is_symlink(at("second")));
  EXPECT_EQ(read_file(at("a")), "new");
  EXPECT_EQ(read_file(at("none")), "made");
  EXPECT_EQ(count(), 5u);
}

TEST_F(Files, that_are_fifos_are_written_into) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  require_writable_file(at("fifo"));
  std::string got;
  std::thread reader([&] { got = read_file(at("fifo")); });
  write_file(at("fifo"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(at("fifo")));
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, that_are_descriptors_keep_what_they_stand_for) {
  write_file(at("a"), "old");
  const int descriptor = ::open(at("a").c_str(), O_RDWR);
  struct stat before {
  }, after{};
  ::fstat(descriptor, &before);
  write_file("/dev/fd/" + std::to_string(descriptor), "new");
  write_file("/proc/self/fd/" + std::to_string(descriptor), " and more");
  ::stat(at("a").c_str(), &after);
  ::close(descriptor);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(read_file(at("a")), "new and more");
}

TEST_F(Files, say_why_they_cannot_be_written) {
  EXPECT_NE(complaint(at("none/a")).find("No such file or directory"), std::string::npos);
  EXPECT_NE(complaint(at("")).find("directory"), std::string::npos);
  EXPECT_NE(complaint(at(std::string(300, 'x'))).find("File name too long"), std::string::npos);
  fs::create_symlink("loop", at("loop"));
  EXPECT_NE(complaint(at("loop")).find("symbolic links"), std::string::npos);
  write_file(at("plain"), "");
  EXPECT_NE(complaint(at("plain/a")).find("Not a directory"), std::string::npos);
  EXPECT_THROW(require_writable_file(at("plain/a")), Error);
  EXPECT_THROW(require_writable_file(at("")), Error);
  EXPECT_NO_THROW(require_writable_file(at("new/a")));
}

}  // namespace
}  // namespace deltagauge::reports
