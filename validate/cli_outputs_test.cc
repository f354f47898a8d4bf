// Where the deltagauge binary writes: never over what it reads or over another output, in folders that it makes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "reports/file.h"
#include "reports/json.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;

const std::string kId = "gdn/fwd/len=5,HK=1,HV=2,K=8,V=4/bf16/gate=mild/keys=iid/precise/seed=3";

class CliOutputs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "outputs_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
    reports::write_file(file("s.json"), R"({"schema": "deltagauge.sweep/1", "cases": [")" + kId + R"("]})");
    fs::create_symlink("s.json", file("link.json"));
    fs::create_symlink("none", file("dangling"));
    EXPECT_EQ(run("case dump " + kId + " --backend reference.recurrent --out t.safetensors"), 0);
    EXPECT_EQ(run("validate s.json --backend reference.recurrent --json r.json"), 0);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + name; }
  // Exit status, run in the folder; stderr goes to a file of that name.
  int run(const std::string& args) const {
    const int status = std::system(("cd '" + folder_ + "' && " DELTAGAUGE_BINARY " " + args + " >out 2>stderr").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string folder_;
};

TEST_F(CliOutputs, are_none_of_the_files_that_are_read) {
  const std::string config = reports::read_file(file("s.json")), report = reports::read_file(file("r.json")),
                    tensors = reports::read_file(file("t.safetensors"));
  for (const std::string args : {"validate s.json --json s.json",
                                 "validate s.json --junit ./link.json",
                                 "validate link.json --csv s.json",
                                 "bench s.json --markdown s.json",
                                 "range s.json --html s.json",
                                 "cp s.json --sarif s.json",
                                 "replay s.json --trace s.json",
                                 "validate --op gdn --tensors t.safetensors --json t.safetensors",
                                 "validate --op gdn --tensors t.safetensors --csv new/../t.safetensors",
                                 "validate s.json --resume r.json --csv r.json",
                                 "cp s.json --resume r.json --json x --trace r.json",
                                 "bench s.json --baseline r.json --json r.json",
                                 "bench s.json --against r.json --json r.json",
                                 "report convert r.json --csv r.json",
                                 "report merge r.json --json r.json",
                                 "report diff r.json r.json --json r.json",
                                 "report diff t.safetensors t.safetensors --base r.json --json r.json",
                                 "report html r.json --out r.json",
                                 "report html t.safetensors --history r.json --out r.json",
                                 "report trace r.json --out r.json",
                                 "report history r.json --add r.json"}) {
    EXPECT_EQ(run(args), 2) << args;
    EXPECT_NE(reports::read_file(file("stderr")).find(": expected a file that is not read, got "), std::string::npos)
        << args << "\n"
        << reports::read_file(file("stderr"));
    EXPECT_EQ(reports::read_file(file("out")), "") << args;
  }
  EXPECT_EQ(reports::read_file(file("s.json")), config);
  EXPECT_EQ(reports::read_file(file("r.json")), report);
  EXPECT_EQ(reports::read_file(file("t.safetensors")), tensors);
}

TEST_F(CliOutputs, are_files_of_their_own) {
  for (const std::string args :
       {"validate s.json --json x --junit x", "bench s.json --json x --csv ./x",
        "range s.json --report d --json d/report.json", "cp s.json --report d --csv d/table.txt",
        "replay s.json --report d --trace d/trace.pftrace", "validate s.json --report d --html d",
        "validate s.json --json d --junit d/x", "validate s.json --json d/x --csv d",
        "validate s.json --json none --junit dangling", "validate s.json --json x --junit x.partial",
        "report convert r.json --csv x --markdown x"}) {
    EXPECT_EQ(run(args), 2) << args;
    EXPECT_NE(reports::read_file(file("stderr")).find(": expected a file of its own, got "), std::string::npos)
        << args << "\n"
        << reports::read_file(file("stderr"));
    for (const char* name : {"x", "d", "none"}) EXPECT_FALSE(fs::exists(file(name))) << args;
  }
  EXPECT_EQ(run("validate s.json --backend reference.recurrent --json /dev/null --csv /dev/null"), 0);
  EXPECT_EQ(run("validate s.json --backend reference.recurrent --resume r.json --json r.json"), 0) << "its rows are in it";
}

TEST_F(CliOutputs, lie_in_folders_that_are_made) {
  for (const std::string& args : std::vector<std::string>{
           "validate s.json --backend reference.recurrent --json ",
           "bench s.json --backend oracle.f64 --min-time 0.01 --csv ", "case dump " + kId + " --out ",
           "report convert r.json --junit ", "report merge r.json --json ", "report diff r.json r.json --json ",
           "report html r.json --out ",
           "case shrink "
           "gdn/fwd/len=34,HK=1,HV=1,K=16,V=16/bf16/gate=none/data=lattice/scale=1/k[9:20,*,*]=0.3/seed=1 "
           "--backend reference.recurrent --check lattice --out "}) {
    EXPECT_LT(run(args + "new/folder/file"), 2) << args << "\n" << reports::read_file(file("stderr"));
    EXPECT_TRUE(fs::is_regular_file(file("new/folder/file"))) << args;
    fs::remove_all(file("new"));
    EXPECT_EQ(run(args + "s.json/file"), 2) << args;
  }
  EXPECT_EQ(run("report trace r.json --out new/folder/t.json"), 0);
  EXPECT_EQ(run("case dump " + kId + " --out -"), 2);
  EXPECT_FALSE(fs::exists(file("-")));
}

}  // namespace
}  // namespace deltagauge::validate
