"""Tests that scripts/check_classes.py counts the methods of a class, and finds files and classes with equal names."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts" / "check_classes.py"


class CheckClasses(unittest.TestCase):
    def run_it(self, files, *options):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, SCRIPT, *options, root], capture_output=True, text=True, check=False)

    def check(self, files):
        """Returns the lines that the script prints about a tree of these files, without the summary."""
        result = self.run_it({"wire/some.h": "struct Some { int one; };\n", **files})
        lines = result.stdout.splitlines()[:-1]
        self.assertEqual(result.returncode, 1 if lines else 0, result)
        return lines

    def methods(self, body):
        """Returns the number of methods that the script counts in a class with this body."""
        result = self.run_it({"wire/a.h": "namespace n {\nclass Counted : public Base {\n" + body + "};\n}\n"}, "--list")
        return int(next(line for line in result.stdout.splitlines() if " Counted " in line).split()[0])

    def test_methods_are_counted_however_they_are_written(self):
        for method in ("void f();", "int f() const { return g(1); }", "Counted();", "~Counted() { close({1, 2}); }",
                       "explicit Counted(int a) : a_(a), b_{a} {}", "bool operator==(const Counted&) const = default;",
                       "template <class T>\n  std::map<int, T> f(T t = {}, int b = g());",
                       "virtual void f() = 0;", "void f(std::function<void(int)> g = [](int) { h(); });",
                       "[[nodiscard]] static auto f() -> int;", "operator bool() const { return a_ > 0; }",
                       "// void g();\n  void f();", "friend class X;\n  using T = int (*)(int);\n  void f();"):
            self.assertEqual(self.methods(f" public:\n  {method}\n  int a_ = 1;\n"), 1, method)

    def test_fields_types_and_deleted_functions_are_no_methods(self):
        for other in ("std::function<void(int)> call_;", "int a_ = f(1);", "std::vector<int> v_{1, 2};",
                      "using Call = void (*)(int);", "friend bool operator==(const X&, const X&);",
                      "enum class Kind { kOne, kTwo };", "static_assert(sizeof(int) == 4);",
                      "Counted(const Counted&) = delete;", "/* void f(); */", "struct Inner { int a; void f(); };",
                      'const char* text_ = "f();";'):
            self.assertEqual(self.methods(f" private:\n  {other}\n"), 0, other)

    def test_a_class_of_more_than_30_methods(self):
        def of(count):
            methods = "".join(f"  void f{i}();\n" for i in range(count))
            return {"emulator/engine/a.h": f"namespace rocemu {{\nclass A {{\n{methods}}};\n}}\n"}
        self.assertEqual(self.check(of(30)), [])
        lines = self.check(of(31))
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("emulator/engine/a.h:2: A has 31 methods"), lines)

    def test_files_of_one_name_that_a_folder_may_include(self):
        lines = self.check({"emulator/abi/a.h": "", "emulator/daemon/run/a.h": ""})
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("emulator/abi/a.h:1: emulator/daemon/run/a.h has the same name"), lines)
        self.assertEqual(len(self.check({"emulator/engine/a.cc": "", "emulator/sanitizer/a.cc": ""})), 1)
        self.assertEqual(self.check({"vipl/a.h": "", "wire/a.h": ""}), [], "nothing may include both")
        self.assertEqual(self.check({"emulator/daemon/main.cc": "", "emulator/command/main.cc": ""}), [])

    def test_classes_of_one_name_in_one_namespace(self):
        one = "namespace rocemu::a {\nstruct One { int a; };\n}\n"
        lines = self.check({"emulator/abi/a.h": one, "emulator/os/b.cc": one})
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("emulator/abi/a.h:2: rocemu::a::One"), lines)
        self.assertEqual(self.check({"emulator/abi/a.h": one, "emulator/os/b.h": one.replace("::a", "::b")}), [])
        unnamed = one.replace("{\nstruct", "{\nnamespace {\nstruct").replace(";\n}\n", ";\n}\n}\n")
        self.assertEqual(self.check({"emulator/abi/a.h": one, "emulator/os/b.cc": unnamed}), [])
        nested = "namespace rocemu::a {\nstruct Two { struct One { int a; }; };\n}\n"
        self.assertEqual(self.check({"emulator/abi/a.h": one, "emulator/os/b.h": nested}), [])


if __name__ == "__main__":
    unittest.main()
