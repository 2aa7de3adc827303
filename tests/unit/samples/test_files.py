"""Pictures, recordings, texts and arrays in files become what an input takes, or are refused with their path."""

import sys

import numpy as np
import pytest
import soundfile
from PIL import Image

from tritongen.dtypes import from_wire
from tritongen.errors import MissingExtra
from tritongen.samples import SampleError
from tritongen.samples.files import Wanted, items_of
from tritongen.spec.samples import SampleFiles


def wanted(dtype, *item):
    return Wanted("x", from_wire(dtype), item)


def arrays(path, want, *, sizes=(), **how):
    return [item.array(sizes) for item in items_of(path, SampleFiles(files=str(path), **how), want)]


@pytest.fixture
def picture(tmp_path):
    """Four pixels high and two wide: the left column red, the right one of a gray that is 51 everywhere."""
    pixels = np.full((4, 2, 3), 51, np.uint8)
    pixels[:, 0] = (255, 0, 0)
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def recording(tmp_path):
    """Two channels, eight samples at 8 kHz: 0.5 on the left, -0.25 on the right."""
    path = tmp_path / "sound.wav"
    soundfile.write(path, np.tile([[0.5, -0.25]], (8, 1)), 8000, subtype="PCM_16")
    return path


class TestPictures:
    def test_channels_first_of_floats_are_from_0_to_1(self, picture):
        (array,) = arrays(picture, wanted("FP32", 3, 4, 2))
        assert (array.shape, array.dtype) == ((3, 4, 2), np.float32)
        assert array[:, 0, 0] == pytest.approx([1, 0, 0])
        assert array[:, 0, 1] == pytest.approx([0.2, 0.2, 0.2])

    def test_channels_last_of_bytes_stay_as_they_are(self, picture):
        (array,) = arrays(picture, wanted("UINT8", 4, 2, 3))
        assert array[0].tolist() == [[255, 0, 0], [51, 51, 51]]

    def test_the_order_of_colors_and_the_normalisation_are_those_of_the_spec(self, picture):
        image = {"color": "bgr", "range": [-1, 1], "mean": [0.0, 0.5, 0.0], "std": [2.0]}
        (array,) = arrays(picture, wanted("FP32", 3, 4, 2), image=image)
        assert array[:, 0, 0] == pytest.approx([-0.5, -0.75, 0.5])

    def test_whole_numbers_are_rounded_in_a_range(self, picture):
        (array,) = arrays(picture, wanted("INT8", 4, 2, 3), image={"range": [-128, 127]})
        assert array[0].tolist() == [[127, -128, -128], [-77, -77, -77]]

    def test_gray_has_no_axis_where_the_input_has_none(self, picture):
        (array,) = arrays(picture, wanted("UINT8", 4, 2))
        assert array.tolist() == [[76, 51]] * 4  # ITU-R 601: 0.299 of red

    @pytest.mark.parametrize(("resize", "corners"), [("stretch", (76, 51)), ("crop", (76, 51)), ("pad", (0, 0))])
    def test_another_shape_is_filled_as_asked(self, picture, resize, corners):
        (array,) = arrays(picture, wanted("UINT8", 8, 8), image={"resize": resize})
        assert (array[0, 0], array[0, -1]) == corners

    def test_a_side_of_any_size_follows_the_picture(self, picture):
        assert arrays(picture, wanted("FP32", 3, 8, -1))[0].shape == (3, 8, 4)
        assert arrays(picture, wanted("FP32", 3, -1, -1))[0].shape == (3, 4, 2)
        assert arrays(picture, wanted("FP32", 3, -1, -1), sizes=(3, 6, 6))[0].shape == (3, 6, 6)
        assert arrays(picture, wanted("FP32", -1, -1, -1), image={"layout": "hwc"})[0].shape == (4, 2, 3)

    @pytest.mark.parametrize(
        ("want", "how", "words"),
        [
            (wanted("FP32", 3, 5, 3), {}, "where the channels"),
            (wanted("FP32", 4, 5, 5), {}, "where the channels"),
            (wanted("FP32", 4, 5, 5), {"layout": "chw"}, "has 4 channels"),
            (wanted("FP32", 1, 5, 5), {"color": "rgb"}, "has 1 channels, and a picture has 3"),
            (wanted("FP32", 5, 5), {"color": "rgb"}, "no place for the channels"),
            (wanted("FP32", 5), {}, "a picture becomes"),
            (wanted("FP32", 3, 4, 4), {"mean": [1, 2]}, "mean has 2 values, and the input has 3 channels"),
            (wanted("INT8", 4, 2, 3), {}, "does not fit INT8: 255"),
        ],
    )
    def test_an_input_that_cannot_hold_it_is_said_with_the_file(self, picture, want, how, words):
        with pytest.raises(SampleError) as caught:
            arrays(picture, want, image=how)
        assert words in str(caught.value)
        assert str(picture) in str(caught.value)

    @pytest.mark.parametrize(("content", "words"), [(b"", "no picture"), (b"\x89PNG\r\n\x1a\n" + b"x" * 50, "no picture")])
    def test_a_damaged_file_is_said(self, tmp_path, content, words):
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(SampleError, match=words):
            arrays(tmp_path, wanted("FP32", 3, 4, 4))

    def test_more_than_8_bits_are_refused(self, tmp_path):
        Image.fromarray(np.full((2, 2), 60_000, np.uint16)).save(tmp_path / "deep.png")
        with pytest.raises(SampleError, match="more than 8 bits"):
            arrays(tmp_path, wanted("FP32", 2, 2))

    def test_a_bomb_is_not_unpacked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
        Image.new("1", (8, 8)).save(tmp_path / "bomb.png")
        with pytest.raises(SampleError, match="more pixels"):
            arrays(tmp_path, wanted("FP32", 2, 2))

    def test_without_pillow_the_extra_is_named(self, picture, monkeypatch):
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(MissingExtra, match=r"tritongen\[media\]"):
            arrays(picture, wanted("FP32", 3, 4, 2))


class TestRecordings:
    def test_channels_stand_where_the_input_has_them(self, recording):
        assert arrays(recording, wanted("FP32", 2, 8))[0][:, 0] == pytest.approx([0.5, -0.25])
        assert arrays(recording, wanted("FP32", -1, 2))[0][0] == pytest.approx([0.5, -0.25])

    def test_they_are_mixed_where_that_is_asked(self, recording):
        assert arrays(recording, wanted("FP32", 8), audio={"channels": "mix"})[0] == pytest.approx([0.125] * 8)

    def test_whole_numbers_are_as_stored(self, recording):
        assert arrays(recording, wanted("INT16", 2, 8))[0][:, 0].tolist() == [16384, -8192]

    def test_a_fixed_length_is_cut_or_filled_with_silence(self, recording):
        assert arrays(recording, wanted("FP32", 2, 4))[0].shape == (2, 4)
        (long,) = arrays(recording, wanted("FP32", 2, 10))
        assert long[0] == pytest.approx([0.5] * 8 + [0, 0])

    @pytest.mark.parametrize(
        ("want", "how", "words"),
        [
            (wanted("FP32", 8), {}, "has 2 channels, and the input takes 1; write audio: {channels: mix}"),
            (wanted("FP32", 2, 8), {"sample_rate": 16000}, "has 8000 samples a second, and audio: sample_rate has 16000"),
            (wanted("UINT8", 8), {}, "the input is UINT8"),
            (wanted("FP32", 1, 2, 3), {}, "a recording becomes [samples]"),
        ],
    )
    def test_what_does_not_fit_is_said_with_the_file(self, recording, want, how, words):
        with pytest.raises(SampleError) as caught:
            arrays(recording, want, audio=how)
        assert words in str(caught.value)
        assert str(recording) in str(caught.value)

    def test_files_of_different_rates_do_not_mix(self, recording, tmp_path):
        soundfile.write(tmp_path / "z.flac", np.zeros((8, 2)), 16000)
        with pytest.raises(SampleError, match=r"z\.flac: it has 16000 samples a second, and .*sound\.wav has 8000"):
            arrays(tmp_path, wanted("FP32", 2, 8))

    def test_a_damaged_or_empty_file_is_said(self, tmp_path):
        (tmp_path / "a.wav").write_bytes(b"RIFF")
        with pytest.raises(SampleError, match=r"a\.wav: it is no recording"):
            arrays(tmp_path, wanted("FP32", 8))
        soundfile.write(tmp_path / "a.wav", np.zeros(0), 8000)
        with pytest.raises(SampleError, match="holds no sound"):
            arrays(tmp_path, wanted("FP32", 8))

    def test_without_soundfile_the_extra_is_named(self, recording, monkeypatch):
        monkeypatch.setitem(sys.modules, "soundfile", None)
        with pytest.raises(MissingExtra, match=r"tritongen\[media\]"):
            arrays(recording, wanted("FP32", 2, 8))


class TestTexts:
    def test_each_line_is_an_item(self, tmp_path):
        (tmp_path / "b.txt").write_text("zwei\n\n  \ndrei \n", encoding="utf-8")
        (tmp_path / "a.txt").write_text("eins", encoding="utf-8")
        found = arrays(tmp_path, wanted("BYTES", 1))
        assert [array.tolist() for array in found] == [[b"eins"], [b"zwei"], [b"drei "]]

    def test_or_each_file(self, tmp_path):
        (tmp_path / "a.txt").write_text("eins\nzwei", encoding="utf-8")
        assert arrays(tmp_path, wanted("BYTES", -1), text={"per": "file"})[0].tolist() == [b"eins\nzwei"]

    def test_other_files_are_sent_as_they_are(self, picture):
        assert arrays(picture, wanted("BYTES", 1))[0][0] == picture.read_bytes()

    def test_zeros_at_the_end_are_kept(self, tmp_path):
        (tmp_path / "a.bin").write_bytes(b"ab\0\0")
        assert arrays(tmp_path, wanted("BYTES", 1))[0].tolist() == [b"ab\0\0"]

    def test_what_is_no_text_is_said(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"ab\xff")
        with pytest.raises(SampleError, match=r"a\.txt is no text in UTF-8: byte 2 is 0xff"):
            arrays(tmp_path, wanted("BYTES", 1))

    def test_an_input_of_two_texts_takes_no_line(self, tmp_path):
        (tmp_path / "a.txt").write_text("eins", encoding="utf-8")
        with pytest.raises(SampleError, match=r"a\.txt:1: expected the shape \[2\]"):
            arrays(tmp_path, wanted("BYTES", 2))


class TestArrays:
    def test_an_item_or_rows_of_items(self, tmp_path):
        np.save(tmp_path / "a.npy", np.arange(3.0))
        np.save(tmp_path / "b.npy", np.arange(6.0).reshape(2, 3))
        assert [array.tolist() for array in arrays(tmp_path, wanted("FP32", 3))] == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]

    def test_an_archive_has_one_by_the_inputs_name(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.ones((2, 3)), other=np.zeros(1))
        assert len(arrays(tmp_path / "a.npz", wanted("FP32", 3))) == 2
        with pytest.raises(SampleError, match="has no array 'y'; it has x, other"):
            items_of(tmp_path / "a.npz", SampleFiles(files="a.npz"), Wanted("y", from_wire("FP32"), (3,)))

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.zeros((2, 2, 3)), "or rows of them, got an array [2, 2, 3]"),
            (np.zeros((2, 4)), "or rows of them, got an array [2, 4]"),
            (np.full((2, 3), "a"), "row 0: expected numbers"),
            (np.array(["a"] * 3), "a.npy"),
        ],
    )
    def test_what_does_not_fit_is_said_with_the_file(self, tmp_path, array, words):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(SampleError) as caught:
            arrays(tmp_path, wanted("FP32", 3))
        assert words in str(caught.value)
        assert "a.npy" in str(caught.value)

    @pytest.mark.parametrize("name", ["a.npy", "a.npz"])
    @pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04nothing"])
    def test_a_damaged_file_is_said(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SampleError, match="cannot be read as a"):
            arrays(tmp_path, wanted("FP32", 3))


class TestFolders:
    def test_files_below_it_come_by_their_names_and_hidden_ones_do_not(self, tmp_path):
        for name in ("b/2.npy", "a/1.npy", ".git/0.npy", "a/.DS_Store"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            np.save(tmp_path / name, np.full(1, float(name[-5]))) if name.endswith(".npy") else (tmp_path / name).write_bytes(b"x")
        assert [array.tolist() for array in arrays(tmp_path, wanted("FP32", 1))] == [[1], [2]]

    def test_files_of_which_nothing_can_be_made_are_named(self, tmp_path):
        for number in range(7):
            (tmp_path / f"{number}.pdf").write_bytes(b"x")
        with pytest.raises(SampleError, match=r"no FP32 can be made of .*0\.pdf, .*4\.pdf and 2 more"):
            arrays(tmp_path, wanted("FP32", 1))

    def test_nothing_is_said(self, tmp_path):
        with pytest.raises(SampleError, match="holds no item"):
            arrays(tmp_path, wanted("FP32", 1))
        with pytest.raises(SampleError, match="there is no file or folder"):
            arrays(tmp_path / "gone", wanted("FP32", 1))

    def test_nothing_is_decoded_before_it_is_asked_for(self, tmp_path):
        for number in range(3):
            (tmp_path / f"{number}.png").write_bytes(b"no picture")
        items = items_of(tmp_path, SampleFiles(files="."), wanted("FP32", 3, 4, 4))
        assert len(items) == 3
        with pytest.raises(SampleError, match=r"1\.png: it is no picture"):
            items[1].array(())

    def test_an_input_of_which_no_shape_is_known_takes_arrays_alone(self, picture, tmp_path):
        with pytest.raises(SampleError, match="nothing is known of the shape"):
            arrays(picture, Wanted("x", from_wire("FP32"), None))
        picture.unlink()
        np.save(tmp_path / "a.npy", np.ones((2, 2)))
        assert arrays(tmp_path, Wanted("x", from_wire("FP32"), None))[0].shape == (2, 2)
