// Tests the "#!" line, which must be read as the kernel reads it: fs/binfmt_script.c, execve(2)
// "Interpreter scripts", env(1).
#include "emulator/os/programs/script_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace rocemu {
namespace {

std::optional<Script> script_of(const std::string& text) {
  const std::string path = testing::TempDir() + "script." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << text;
  std::optional<Script> script = read_script(path);
  std::remove(path.c_str());
  return script;
}

TEST(ScriptFile, TakesTheFirstWordOfTheLineForTheInterpreter) {
  for (const char* text :
       {"#!/bin/sh\necho\n", "#! \t/bin/sh\n", "#!/bin/sh -e -u\n", "#!/bin/sh"}) {
    const std::optional<Script> script = script_of(text);
    ASSERT_TRUE(script) << text;
    EXPECT_EQ(script->interpreter, "/bin/sh");
    EXPECT_EQ(script->program, "/bin/sh");
    EXPECT_FALSE(script->is_found_by_env);
  }
}

TEST(ScriptFile, KeepsACarriageReturnAsPartOfTheName) {
  EXPECT_EQ(script_of("#!/bin/sh\r\n")->interpreter, "/bin/sh\r");
}

TEST(ScriptFile, IsNoScriptWithoutALineThatNamesAProgram) {
  for (const char* text :
       {"", "#", "#!", "#!\n/bin/sh\n", "#!  \t\n", "echo #!/bin/sh\n", "\n#!/bin/sh\n"})
    EXPECT_FALSE(script_of(text)) << text;
  EXPECT_FALSE(read_script("/no/such/file"));
  EXPECT_FALSE(read_script("/"));
}

TEST(ScriptFile, ReadsTheFirst256BytesOnly) {
  EXPECT_EQ(script_of("#!/" + std::string(300, 'x') + "\n")->interpreter.size(), 254u);
}

TEST(ScriptFile, NamesTheProgramThatEnvIsToFind) {
  struct {
    const char* line;
    const char* program;
    bool is_found_by_env;
  } const cases[] = {
      {"#!/usr/bin/env python3\n", "python3", true},
      {"#!/usr/bin/env -S python3 -u\n", "python3", true},
      {"#!/usr/bin/env\n", "", false},
      // env searches for a program named "python3 -u", and reports itself that there is none.
      {"#!/usr/bin/env python3 -u\n", "python3", false},
      // The script may set PATH, so env may find another program. An option's argument is not a
      // program.
      {"#!/usr/bin/env -S PATH=/opt python3\n", "python3", false},
      {"#!/usr/bin/env -S -u HOME python3\n", "HOME", false},
  };
  for (const auto& one : cases) {
    const std::optional<Script> script = script_of(one.line);
    ASSERT_TRUE(script) << one.line;
    EXPECT_EQ(script->interpreter, "/usr/bin/env");
    EXPECT_EQ(script->program, one.program) << one.line;
    EXPECT_EQ(script->is_found_by_env, one.is_found_by_env) << one.line;
  }
}

}  // namespace
}  // namespace rocemu
