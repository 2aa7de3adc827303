"""Reading text files, and YAML with positions."""

import math
import os

import pytest

from tritongen.errors import InputError
from tritongen.sources import MAX_BYTES, SourceText, parse_yaml, read_text


def parse(text):
    return parse_yaml(SourceText("f.yaml", text))


def findings(text):
    """(code, line, column, message) of all that is wrong with a text."""
    return [(problem.code, problem.location.line, problem.location.column, problem.message) for problem in parse(text).problems]


def value(text):
    parsed = parse(text)
    assert parsed.problems == ()
    return parsed.root.plain()


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_text(path)
    (finding,) = caught.value.diagnostics
    assert finding.hint
    return finding


class TestReading:
    def test_byte_order_mark_is_dropped(self, tmp_path):
        file = tmp_path / "a.yaml"
        file.write_bytes(b"\xef\xbb\xbfa: 1\n")
        assert read_text(file).text == "a: 1\n"

    def test_missing_file(self, tmp_path):
        finding = refusal(tmp_path / "none.yaml")
        assert (finding.code, str(finding.location)) == ("TG001", str(tmp_path / "none.yaml"))
        assert "no such file" in finding.message

    def test_file_used_as_folder(self, tmp_path):
        (tmp_path / "a").write_text("x")
        assert refusal(tmp_path / "a" / "b").code == "TG001"

    def test_folder_offers_the_spec_in_it(self, tmp_path):
        (tmp_path / "spec.yaml").write_text("version: 1")
        finding = refusal(tmp_path)
        assert "folder" in finding.message
        assert str(tmp_path / "spec.yaml") in finding.hint

    def test_pipe_is_refused_without_waiting(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        assert "pipe" in refusal(tmp_path / "pipe").message

    def test_device_is_refused(self, tmp_path):
        (tmp_path / "null").symlink_to(os.devnull)
        assert "device" in refusal(tmp_path / "null").message

    def test_loop_of_links(self, tmp_path):
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        assert refusal(tmp_path / "a").code == "TG001"

    def test_nul_in_the_name(self, tmp_path):
        assert "NUL" in refusal(tmp_path / "a\0b").message

    def test_unreadable_file(self, tmp_path, monkeypatch):
        file = tmp_path / "a.yaml"
        file.write_text("a: 1")
        file.chmod(0)
        if os.access(file, os.R_OK):  # root reads everything: let the system's answer come from a stand-in
            monkeypatch.setattr(type(file), "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        finding = refusal(file)
        assert "may not be read" in finding.message
        assert "chmod" in finding.hint

    def test_too_large(self, tmp_path):
        file = tmp_path / "a.yaml"
        with file.open("wb") as sparse:
            sparse.truncate(MAX_BYTES + 1)
        assert "larger than 10 MB" in refusal(file).message

    @pytest.mark.parametrize(
        ("data", "line", "column", "offset"),
        [(b"a: 1\r\nb: \xff", 2, 4, 9), (b"\xff", 1, 1, 0), (b"\xef\xbb\xbfa\xc3(", 1, 2, 4), ("ä: ".encode() + b"\xe4", 1, 4, 4)],
    )
    def test_other_encoding_names_the_byte_and_its_place(self, tmp_path, data, line, column, offset):
        file = tmp_path / "a.yaml"
        file.write_bytes(data)
        finding = refusal(file)
        assert (finding.code, finding.location.line, finding.location.column) == ("TG002", line, column)
        assert f"byte {offset} " in finding.message

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_utf_16_says_how_to_save(self, tmp_path, encoding):
        file = tmp_path / "a.yaml"
        file.write_text("version: 1", encoding=encoding)
        assert "UTF-16" in refusal(file).message

    def test_git_lfs_pointer(self, tmp_path):
        file = tmp_path / "a.yaml"
        file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        finding = refusal(file)
        assert (finding.code, "LFS" in finding.message, finding.hint) == ("TG003", True, "run: git lfs pull")

    @pytest.mark.parametrize("text", ["<!DOCTYPE html>\n<p>", "\n <html lang=en>", "<HTML>"])
    def test_web_page(self, tmp_path, text):
        file = tmp_path / "a.yaml"
        file.write_text(text)
        assert "web page" in refusal(file).message


class TestPositions:
    def test_lines_count_as_in_editors(self):
        source = SourceText("f", "a\r\nb\rc\n\u2028d")
        assert [(source.location(offset).line, source.location(offset).column) for offset in (0, 3, 5, 8)] == [(1, 1), (2, 1), (3, 1), (4, 2)]
        assert source.location(99).text == "\u2028d"

    def test_keys_values_and_items(self):
        parsed = parse("a:\n  b: [1, {c: x}]\n")
        found = parsed.root.find(("a", "b", 1, "c"))
        assert (found.node.scalar, found.key_start, found.depth) == ("x", 13, 4)
        assert parsed.root.find(("a", "b", 7)).depth == 2
        assert parsed.root.find(("a", "nothing", "deeper")).depth == 1

    def test_single_entry_stands_for_a_list_of_one(self):
        assert parse("a: {b: 1}").root.find(("a", 0, "b")).node.scalar == 1


class TestValues:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("null", None),
            ("~", None),
            ("true", True),
            ("False", False),
            ("yes", "yes"),
            ("on", "on"),
            ("12", 12),
            ("-3", -3),
            ("010", 10),
            ("0x1F", 31),
            ("0o17", 15),
            ("1_000", "1_000"),
            ("1:30", "1:30"),
            ("1.5", 1.5),
            ("-.inf", -math.inf),
            ("1e3", 1000.0),
            ("'12'", "12"),
            ('"a\\tb"', "a\tb"),
            ('"\\ud83d\\ude00"', "\U0001f600"),
            ("!!str 12", "12"),
            ("!!float 1", 1.0),
            ("! 12", "12"),
            ("!!int '7'", 7),
        ],
    )
    def test_core_schema(self, text, expected):
        result = value(f"k: {text}")["k"]
        assert result == expected
        assert type(result) is type(expected)

    def test_a_whole_number_is_a_name(self):
        assert value("a: {1: x, 0: y, -5: z, '007': k}") == {"a": {"1": "x", "0": "y", "-5": "z", "007": "k"}}

    def test_nan(self):
        assert math.isnan(value("k: .nan")["k"])

    def test_aliases_and_merge_keys(self):
        data = value("base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\none: {<<: *b, y: 5}\nboth: {<<: [*b, *o]}\ntext: {'<<': 1}\n")
        assert data["one"] == {"x": 1, "y": 5}
        assert data["both"] == {"x": 1, "y": 2, "z": 4}
        assert data["text"] == {"<<": 1}

    def test_anchor_may_be_defined_again(self):
        assert value("a: &x 1\nb: &x 2\nc: *x") == {"a": 1, "b": 2, "c": 2}

    @pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
    def test_nothing(self, text):
        parsed = parse(text)
        assert parsed.problems == ()
        assert parsed.root is None or parsed.root.scalar is None


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "code", "line", "column", "words"),
        [
            ("a: 1\na: 2", "TG005", 2, 1, "f.yaml:1:1"),
            ("a: 1\n---\nb: 2", "TG003", 2, 1, "second YAML document"),
            ("a: 2024-01-31", "TG006", 1, 4, "date"),
            ("a: 2024-01-31T10:00:00Z", "TG006", 1, 4, "date"),
            ("a: 18446744073709551616", "TG006", 1, 4, "too large"),
            ("a: " + "9" * 5000, "TG006", 1, 4, "too large"),
            ("a: 1e999", "TG006", 1, 4, "too large"),
            ("a: !!python/object/apply:os.system [x]", "TG006", 1, 4, "!!python/object/apply:os.system"),
            ("a: !env HOME", "TG006", 1, 4, "!env"),
            ("a: !!binary aGk=", "TG006", 1, 4, "!!binary"),
            ("a: !!int x", "TG006", 1, 4, "int"),
            ("a: {010: x}", "TG006", 1, 5, "read as 10"),
            ("a: {1.5: x}", "TG006", 1, 5, "read as 1.5"),
            ("a: {1: x, '1': y}", "TG005", 1, 11, "the key '1' is there twice"),
            ("true: x", "TG006", 1, 1, "read as true"),
            ("? [a]\n: x", "TG006", 1, 3, "list or a mapping"),
            ("a: *nowhere", "TG006", 1, 4, "no anchor"),
            ("a: &x [*x]", "TG006", 1, 8, "inside its own anchor"),
            ("a: {<<: 1}", "TG006", 1, 9, "<<"),
            ('a: "\\ud800"', "TG006", 1, 4, "surrogate"),
            ("a: " + "[" * 100 + "]" * 100, "TG006", 1, 67, "deeper than 64"),
            ("[" * 200_000, "TG006", 1, 65, "deeper than 64"),
            ("a: b\x07", "TG002", 1, 5, "U+0007"),
        ],
    )
    def test_finding_with_place(self, text, code, line, column, words):
        (found,) = findings(text)
        assert found[:3] == (code, line, column)
        assert words in found[3]
        assert parse(text).problems[0].hint

    def test_several_findings_in_one_go(self):
        assert [code for code, *_ in findings("a: 1\na: 2\nb: 2020-01-01\n1.5: x\n")] == ["TG005", "TG006", "TG006"]

    def test_exploding_aliases_are_refused_before_they_explode(self):
        levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        levels += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
        (found,) = findings("\n".join(levels))
        assert found[0] == "TG006"
        assert "100000" in found[3]

    def test_aliases_cannot_nest_deeper_than_written_lists(self):
        text = "\n".join(["a0: &a0 [x]", *(f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 80))])
        (found,) = findings(text)
        assert "deeper than 64" in found[3]

    def test_a_list_without_end_is_not_read_to_its_end(self, monkeypatch):
        monkeypatch.setattr("tritongen.sources.yaml.MAX_NODES", 1000)
        (found,) = findings("[" + "a," * 3000)
        assert found[:3] == ("TG006", 1, 2003)
        assert "more than 1000 values" in found[3]

    def test_many_values_without_aliases_are_fine(self):
        assert len(value(f"a: [{', '.join(['1'] * 20_000)}]")["a"]) == 20_000


class TestBroken:
    @pytest.mark.parametrize(
        ("text", "line", "column", "words"),
        [
            ("a:\n\tb: 1", 2, 1, "tab"),
            ("a:\n  - x\n\t- y", 3, 1, "tab"),
            ("a\nb: 1", 1, 1, "no ':'"),
            ("a: 1\n  b: 2", 2, 4, "indented further"),
            ("m:\n  - name: x\n   source: y", 3, 4, "column 4"),
            ("a: b: c", 1, 5, "second ':'"),
            ("a: 'x\nb: 1", 1, 4, "never closed"),
            ('a: 1\nb: "x', 2, 4, "never closed"),
            ("a: [1, 2", 1, 4, "never closed"),
            ("a: [1, 2\nb: 3", 1, 4, "line 2"),
            ("a: {b: 1 ]", 1, 10, "expected , or }"),
            ("a: [1, 2]]", 1, 10, "nothing opened"),
            ("a: 'x' y", 1, 8, "text after a value"),
            ("a:\n  - b\n  c: d", 3, 3, "does not continue"),
            ("a: @x", 1, 4, "'@'"),
            ('a: "C:\\models"', 1, 8, "escape"),
            ('a: 1\nb: "\\UFFFFFFFF"', 2, 2, "escape"),
            ("%YAML 1.9999999999999999999999\n---\na: 1", 1, 1, "directive"),
            ("a: &", 1, 5, "end of the text"),
            ("a: [}", 1, 5, "value is expected before this }"),
            ("a: [1,", 1, 7, "value is expected before the end of the text"),
        ],
    )
    def test_human_reason_at_the_place_to_mend(self, text, line, column, words):
        (found,) = findings(text)
        assert found[:3] == ("TG004", line, column)
        assert words in found[3]
        assert parse(text).root is None
