"""The list of kernels, what can be compiled, and the tables of docs/hold_out.md are about the same."""
import importlib.machinery
import importlib.util
import pathlib
import re
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


def load_script():
    path = str(ROOT / "scripts" / "plugin_mistakes")
    spec = importlib.util.spec_from_loader(
        "plugin_mistakes", importlib.machinery.SourceFileLoader("plugin_mistakes", path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()
LIST = script.variants()


def record(name, **changes):
    [variant] = [variant for variant in LIST if variant.name == name]
    return {"name": name, "kind": variant.kind, "group": variant.group, "seed": 1, "killed": False,
            "laws": [], "named": [], "name_is": "none", "seconds": 1, **changes}


class Names(unittest.TestCase):
    def test_every_variant_is_listed_once_and_can_be_compiled(self):
        header = (FOLDER / "variants.h").read_text()
        compiled = re.findall(r"^  variant_(\w+),?$", header, re.MULTILINE)
        listed = [variant.name for variant in LIST if not variant.undeclared]
        self.assertEqual(sorted(compiled), sorted(listed))

    def test_what_is_not_declared_is_what_a_legal_one_declares(self):
        legal = [variant.name for variant in LIST if variant.kind == "legal"]
        for variant in LIST:
            if variant.undeclared:
                self.assertIn(variant.undeclared, legal)
                self.assertEqual(variant.name, variant.undeclared + "_undeclared")

    def test_every_variant_changes_some_line(self):
        code = "".join(path.read_text() for path in FOLDER.glob("*.c"))
        for variant in LIST:
            if variant.name not in ("plain", variant.undeclared + "_undeclared"):
                self.assertIn(f"IS({variant.name})", code)

    def test_the_tables_of_the_page_have_every_name_and_no_other(self):
        tables = script.part((ROOT / "docs" / "hold_out.md").read_text(), script.PART)
        named = re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)
        self.assertEqual(named, [variant.name for variant in LIST])
        for variant in LIST:
            self.assertIn(f"| `{variant.name}` | {variant.what} |", tables)
            survives = f"| `{variant.name}` | {variant.what} | **survives**" in tables
            self.assertEqual(survives, bool(variant.open), variant.name)

    def test_what_the_manual_says_is_to_be_declared_is_what_these_declare(self):
        promises = (FOLDER / "plugin.c").read_text()
        promises = promises[promises.index("ringlab_numerics numerics("):]
        manual = (ROOT / "docs" / "plugins.md").read_text()
        rows = re.findall(r"^\| [^|]* \| (`\.[^|]*) \| `(\w+)` \|$", manual, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 8)
        for declared, name in rows:
            block = promises[promises.index(f"IS({name})"):].split("IS(")[1]
            numbers = {field: value for fields, value in
                       re.findall(r"((?:promised\.\w+ = )+)([^;=]+);", block)
                       for field in re.findall(r"promised\.(\w+)", fields)}
            told = dict(re.findall(r"`\.(\w+) = ([^`]+)`", declared))
            self.assertEqual(told, numbers, name)


class Verdicts(unittest.TestCase):
    def unexpected(self, name, **changes):
        return script.is_unexpected(record(name, **changes), LIST)

    def test_a_legal_kernel_has_to_pass(self):
        self.assertFalse(self.unexpected("plain"))
        self.assertTrue(self.unexpected("plain", killed=True))

    def test_a_wrong_kernel_has_to_be_killed_unless_it_is_open(self):
        self.assertFalse(self.unexpected("zero_scale", killed=True))
        self.assertTrue(self.unexpected("zero_scale"))
        self.assertFalse(self.unexpected("refuses_wide"))
        self.assertTrue(self.unexpected("refuses_wide", killed=True))

    def test_of_several_names_all_have_to_be_right(self):
        [variant] = [variant for variant in LIST if variant.name == "softcap_gradient"]
        [right] = variant.names
        self.assertEqual(script.name_is([right], variant), "right")
        self.assertEqual(script.name_is([right, "mask.ignored"], variant), "false")
        self.assertEqual(script.name_is([], variant), "none")
        self.assertTrue(self.unexpected("softcap_gradient", killed=True, name_is="false"))


if __name__ == "__main__":
    unittest.main()
