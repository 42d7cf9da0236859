#include "attn/io/files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <system_error>

namespace attn::test {
namespace io_files_test {

namespace fs = std::filesystem;
using detail::StagedFiles;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("attn-files-" + std::to_string(std::random_device()()))) { fs::create_directories(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  fs::path operator/(const char* name) const { return path_ / name; }
  void write(const char* name, const char* text) const { std::ofstream(path_ / name, std::ios::binary) << text; }
  /// Texts of files, "-> target" of links, "/" of folders, by path.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      std::string& text = all[entry.path().lexically_relative(path_).string()];
      if (entry.is_symlink()) {
        text = "-> " + fs::read_symlink(entry.path()).string();
      } else if (entry.is_directory()) {
        text = "/";
      } else {
        std::ifstream file(entry.path(), std::ios::binary);
        text = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      }
    }
    return all;
  }

 private:
  fs::path path_;
};

using Contents = std::map<std::string, std::string>;

std::error_code error_of_commit(StagedFiles& files) {
  try {
    files.commit();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

TEST_CASE("a commit that fails restores the files that it has replaced", "[files]") {
  const Folder folder;
  folder.write("a", "old a");
  folder.write("behind", "behind");
  fs::create_symlink("behind", folder / "b");
  {
    StagedFiles files;
    for (const char* name : {"a", "b", "new", "inner/c", "fails", "last"}) files.open(folder / name) << "new";
    // Renaming finds the missing file only when its turn comes.
    for (const auto& entry : fs::directory_iterator(folder / ""))
      if (entry.path().filename().string().starts_with("fails.attn-")) fs::remove(entry.path());
    CHECK(error_of_commit(files) == std::errc::no_such_file_or_directory);
  }
  CHECK(folder.contents() == Contents{{"a", "old a"}, {"b", "-> behind"}, {"behind", "behind"}});
}

TEST_CASE("a folder in the place of a file lets the commit fail and leaves everything unchanged", "[files]") {
  const Folder folder;
  folder.write("a", "old a");
  for (const bool is_last : {false, true}) {
    INFO("the last file: " << is_last);
    {
      StagedFiles files;
      files.open(folder / "a") << "new";
      files.open(folder / "b") << "new";
      if (!is_last) files.open(folder / "c") << "new";
      fs::create_directory(folder / "b");
      CHECK(error_of_commit(files) == std::errc::is_a_directory);
    }
    CHECK(folder.contents() == Contents{{"a", "old a"}, {"b", "/"}});
    fs::remove(folder / "b");
  }
}

TEST_CASE("a commit replaces files and links, and leaves no other files", "[files]") {
  const Folder folder;
  folder.write("a", "old a");
  folder.write("behind", "behind");
  fs::create_symlink("behind", folder / "b");
  StagedFiles files;
  for (const char* name : {"a", "b", "inner/c"}) files.open(folder / name) << "new";
  files.commit();
  files.abandon();
  CHECK(folder.contents() == Contents{{"a", "new"}, {"b", "new"}, {"behind", "behind"}, {"inner", "/"}, {"inner/c", "new"}});
}

TEST_CASE("abandoned files are removed with the folders made for them, and no more can be written", "[files]") {
  const Folder folder;
  folder.write("a", "old a");
  StagedFiles files;
  for (const char* name : {"a", "inner/b", "other/c"}) files.open(folder / name) << "new";
  folder.write("other/theirs", "theirs");
  files.abandon();
  CHECK(folder.contents() == Contents{{"a", "old a"}, {"other", "/"}, {"other/theirs", "theirs"}});
  CHECK_THROWS_AS(files.open(folder / "d"), std::system_error);
  CHECK(error_of_commit(files) == std::errc::operation_canceled);
  CHECK(folder.contents() == Contents{{"a", "old a"}, {"other", "/"}, {"other/theirs", "theirs"}});
}

}  // namespace io_files_test
}  // namespace attn::test
