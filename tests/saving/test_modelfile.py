"""Bytes <-> arrays + JSON: whole, or refused in one clear line; and never half written."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import stat
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from forging import damages, described, forged, sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import proven

from metrifair.errors import DataError, ModelFileError
from tests.seams.saving import (
    Content,
    add_prefix,
    from_bytes,
    modelfile,
    read,
    strip_prefix,
    to_bytes,
    write,
)

DTYPES = ("float64", "float32", "int64", "uint8", "bool")
MOST_VALUES = 2**20
LARGEST_HEADER = 2**24
LARGEST_FILE = 2**30
DEEPEST = 32

SMALL = Content(
    "example",
    {"name": "ä\nb", "list": [1, 2.5, None, True]},
    {"a": np.arange(3.0), "b": np.array([True])},
)
OLD = Content("example", {"age": "old"}, {"x": np.zeros(4)})

texts = st.text(max_size=5)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).filter(
    lambda name: name != "__metadata__"
)
some_arrays = st.dictionaries(
    names, st.sampled_from(DTYPES).flatmap(lambda kind: hnp.arrays(kind, shapes)), max_size=3
)


def refusal(data: bytes) -> str:
    with pytest.raises(ModelFileError) as caught:
        from_bytes(data)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


# What is written is what is read


@settings(proven, max_examples=40)
@given(texts, st.dictionaries(texts, values, max_size=3), some_arrays)
def test_any_json_and_any_arrays_come_back_as_they_were(kind, meta, arrays):
    again = from_bytes(to_bytes(Content(kind, meta, arrays)))
    assert json.dumps(again[:2]) == json.dumps((kind, meta))
    assert sorted(again.arrays) == sorted(arrays)
    for name, array in arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].shape == array.shape
        assert again.arrays[name].tobytes() == array.tobytes()


def test_arrays_that_are_not_contiguous_come_back_whole():
    array = np.arange(12.0).reshape(3, 4).T[::2]
    assert np.array_equal(from_bytes(to_bytes(Content("k", {}, {"a": array}))).arrays["a"], array)


def test_the_same_content_gives_the_same_bytes():
    assert to_bytes(SMALL) == to_bytes(SMALL)


def test_any_safetensors_reader_opens_the_file(tmp_path):
    write(tmp_path / "m", SMALL)
    with safetensors.safe_open(tmp_path / "m", framework="np") as file:
        assert sorted(file.keys()) == ["a", "b"]
        envelope = json.loads(file.metadata()["metrifair"])
    assert list(envelope) == ["sha256", "format", "kind", "versions", "meta"]
    assert sorted(envelope["versions"]) == ["metrifair", "numpy", "scikit-learn", "torch"]


@settings(proven, max_examples=40)
@given(some_arrays)
def test_safetensors_reads_the_arrays_that_were_written_and_the_other_way_round(arrays):
    theirs = safetensors.numpy.load(to_bytes(Content("k", {}, arrays)))
    ours = from_bytes(described({}, arrays)).arrays
    for found in (theirs, ours):
        assert sorted(found) == sorted(arrays)
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].tobytes() == array.tobytes()


def test_several_models_share_a_file_under_prefixes():
    one, two = {"x": np.zeros(1)}, {"x": np.ones(2), "y": np.ones(1)}
    both = add_prefix("0/", one) | add_prefix("1/", two)
    assert strip_prefix("0/", both) == one
    assert sorted(strip_prefix("1/", both)) == ["x", "y"]


# Damage


def test_every_flipped_bit_is_found():
    data = to_bytes(SMALL)
    for at in range(len(data)):
        for bit in range(8):
            with pytest.raises(ModelFileError):
                from_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])


def test_every_truncation_and_any_longer_file_is_found(refused):
    data = to_bytes(SMALL)
    for length in range(len(data)):
        with pytest.raises(ModelFileError):
            from_bytes(data[:length])
    refused.said(refusal(data + b"\0"))


@settings(proven, max_examples=150)
@given(st.data())
def test_bytes_that_are_damaged_and_then_hashed_anew_are_content_or_refused(draw):
    data = sealed(draw.draw(damages(to_bytes(SMALL))))
    try:
        found = from_bytes(data)
    except ModelFileError:
        return
    assert isinstance(found.kind, str)
    assert isinstance(found.meta, dict)


DAMAGED = "the file is damaged: its content does not match its hash; save the model again"


def test_damage_is_told_in_one_line_with_the_path(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(to_bytes(SMALL)[:-1] + b"?")
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert str(caught.value) == f"cannot read '{path}': {DAMAGED}"


# Files of another kind, and hostile ones


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"\0" * 10**7)
    return file.getvalue()


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x04\x95", zipped(), b"{}", b"\xff" * 100], ids=range(5)
)
def test_files_of_another_kind_are_refused(data):
    assert refusal(data).startswith(
        f"this is not a model file of metrifair, or it was cut short ({len(data)} bytes)"
    )


def test_safetensors_of_others_are_refused(refused):
    data = safetensors.numpy.save({"a": np.zeros(2)}, metadata={"format": "pt"})
    refused.said(refusal(data))


def test_a_later_format_asks_for_an_upgrade(refused):
    text = '"format":2,"kind":"k","versions":{"metrifair":"9.1"},"meta":{}'
    refused.said(refusal(forged(text)))


@pytest.mark.parametrize("number", [0, -1, True, None, "1", 1.0, [1]])
def test_a_format_that_is_no_version_is_refused(number):
    assert refusal(described({}, {}, number=number)) == (
        f"the format version must be an integer from 1 upwards, got {number!r}"
    )


HEAD = '"format":1,"kind":"k","versions":{},"meta":'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "NaN", "number NaN"),
        (HEAD + '{"a":-Infinity}', "number -Infinity"),
        (HEAD + '{"a":1e999}', "number 1e999"),
        (HEAD + '{"a":1,"a":2}', "a key occurs twice"),
        (HEAD + "[" * 100_000, "maximum recursion depth"),
        (HEAD + '{"a":' + "9" * 5000 + "}", "more than 64 bits"),
        (HEAD, "Expecting value"),
    ],
    ids=["nan", "infinity", "overflow", "twice", "deep", "long", "cut"],
)
def test_json_that_metrifair_never_writes_is_refused(text, said, refused):
    message = refusal(forged(text))
    refused.said(message)
    assert said in message


def test_json_may_be_nested_this_deep_and_no_deeper():
    def nested(levels: int) -> bytes:
        return forged(HEAD + '{"a":' + "[" * levels + "]" * levels + "}")

    from_bytes(nested(DEEPEST - 2))
    assert (
        refusal(nested(DEEPEST - 1))
        == f"the header nests its values more than {DEEPEST} levels deep"
    )


def test_json_bombs_are_refused_by_their_size():
    bomb = forged(HEAD + '{"a":[' + "[]," * MOST_VALUES + "[]]}")
    assert refusal(bomb) == f"the header contains more than {MOST_VALUES} values"
    long = forged(HEAD + '{"a":"' + "x" * LARGEST_HEADER + '"}')
    assert refusal(long).endswith(f"bytes, more than the {LARGEST_HEADER} that are read")


def test_a_header_that_claims_to_be_huge_is_refused():
    data = to_bytes(SMALL)
    assert "cut short" in refusal((2**62).to_bytes(8, "little") + data[8:])


@pytest.mark.parametrize("text", ['"format":1', HEAD + "[]", '"format":1,"kind":3,"meta":{}'])
def test_a_description_without_kind_or_content_is_refused(text, refused):
    refused.said(refusal(forged(text)))


def test_a_header_without_description_is_refused(refused):
    header = rb'{"__metadata__":{"other":"{\"sha256\":\"' + b"0" * 64 + rb'\"}"}}'
    refused.said(refusal(sealed(len(header).to_bytes(8, "little") + header)))


@pytest.mark.parametrize(
    ("dtype", "code"), [("int8", "I8"), ("int32", "I32"), ("float16", "F16"), ("uint64", "U64")]
)
def test_arrays_of_other_types_are_refused_both_ways(dtype, code):
    array = {"a": np.zeros(2, dtype)}
    assert (
        refusal(described({}, array))
        == f"array 'a' has type {code!r}, which no model file contains"
    )
    with pytest.raises(
        DataError, match=rf"^array 'a' must be one of {', '.join(DTYPES)}, got {dtype}$"
    ):
        to_bytes(Content("k", {}, array))


def test_objects_are_never_written():
    with pytest.raises(DataError, match="got object"):
        to_bytes(Content("k", {}, {"a": np.array([print])}))


def test_booleans_are_true_or_false(refused):
    data = described({}, {"a": np.array([True])})
    refused.said(refusal(sealed(data[:-1] + b"\x02")))


@pytest.mark.parametrize(
    "entry",
    [
        '{"dtype":"F64","shape":[1],"data_offsets":[0,800]}',
        '{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8]}',
        '{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}',
        '{"dtype":"F64","shape":[0,9223372036854775807,9],"data_offsets":[0,0]}',
        '{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}',
        '{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}',
        '{"dtype":"F64","shape":[1],"data_offsets":[8,0]}',
        '{"dtype":"F64","shape":[0],"data_offsets":[0,0]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[4,8]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}',
        '{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}',
        '{"dtype":"F64","shape":[1],"data_offsets":[0,8],"more":0}',
        '{"dtype":"F64","shape":[1]}',
        "[]",
    ],
)
def test_arrays_that_lie_about_their_size_are_refused(entry):
    description = json.dumps('{"sha256":"' + "0" * 64 + '",' + HEAD + "{}}")
    header = f'{{"__metadata__":{{"metrifair":{description}}},"a":{entry}}}'.encode()
    refusal(sealed(len(header).to_bytes(8, "little") + header + b"\0" * 8))


def test_too_many_arrays_are_refused(monkeypatch, refused):
    monkeypatch.setattr(modelfile, "MOST_ARRAYS", 2)
    from_bytes(described({}, {f"{k}": np.zeros(0) for k in range(2)}))
    data = described({}, {f"{k}": np.zeros(0) for k in range(3)})
    refused.said(refusal(data))


def test_files_over_the_limit_are_not_read(tmp_path):
    path = tmp_path / "m"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert str(caught.value) == (
        f"cannot read '{path}': it has {LARGEST_FILE + 1} bytes, more than the {LARGEST_FILE} that "
        "are read"
    )


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    with pytest.raises(DataError) as caught:
        write(tmp_path / "m", Content("k", {"a": "x" * LARGEST_HEADER}, {}))
    assert str(caught.value).startswith("this model cannot be saved: the header takes ")
    assert list(tmp_path.iterdir()) == []


# Paths


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, why in [
        ("missing", "No such file or directory"),
        (".", "it is not a file"),
        ("pipe", "it is not a file"),
    ]:
        with pytest.raises(ModelFileError) as caught:
            read(tmp_path / name)
        assert str(caught.value) == f"cannot read '{tmp_path / name}': {why}"


def test_a_path_that_no_system_knows_is_refused():
    with pytest.raises(ModelFileError, match="embedded null"):
        read("a\0b")
    with pytest.raises(DataError, match="embedded null"):
        write("a\0b", SMALL)


def test_writing_into_a_missing_folder_over_a_folder_or_through_a_file_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name, why in [
        ("no/m", f"the folder {tmp_path / 'no'} does not exist; create it, or name another path"),
        ("folder", "Is a directory; name a path that can be written"),
        ("file/m", "Not a directory; name a path that can be written"),
    ]:
        with pytest.raises(DataError) as caught:
            write(tmp_path / name, SMALL)
        assert str(caught.value) == f"cannot write {tmp_path / name}: {why}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_read_only_folder_and_an_unreadable_file_are_refused(tmp_path):
    write(tmp_path / "m", SMALL)
    (tmp_path / "m").chmod(0)
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="Permission denied"):
        write(tmp_path / "n", SMALL)
    with pytest.raises(ModelFileError, match="Permission denied"):
        read(tmp_path / "m")


def test_what_the_system_forbids_is_told_with_the_path(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    write(tmp_path / "m", SMALL)
    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(DataError) as caught:
        write(tmp_path / "n", SMALL)
    assert (
        str(caught.value)
        == f"cannot write {tmp_path / 'n'}: Permission denied; name a path that can be written"
    )
    with pytest.raises(ModelFileError) as caught:
        read(tmp_path / "m")
    assert str(caught.value) == f"cannot read '{tmp_path / 'm'}': Permission denied"


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path):
    write(tmp_path / "m", OLD)
    (tmp_path / "usual").touch()
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "m").chmod(0o600)
    write(tmp_path / "m", SMALL)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o600
    assert read(tmp_path / "m").meta == SMALL.meta


def test_saving_through_a_link_keeps_the_link(tmp_path):
    write(tmp_path / "m", OLD)
    (tmp_path / "link").symlink_to("m")
    write(tmp_path / "link", SMALL)
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "m").meta == SMALL.meta


# Crashes


@pytest.mark.parametrize("step", ["os.replace", "os.fsync"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, step, refused
):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    write(tmp_path / "m", OLD)
    monkeypatch.setattr(step, full)
    with refused(DataError):
        write(tmp_path / "m", SMALL)
    assert read(tmp_path / "m").meta == OLD.meta
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    write(tmp_path / "m", OLD)
    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "m", SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


WRITER = (
    f"from {Content.__module__} import Content, write\n"
    """
import os, sys, time
import numpy as np

def stuck(*_):
    print("stuck", flush=True)
    time.sleep(60)

setattr(os, sys.argv[2], stuck)
write(sys.argv[1], Content("example", {"age": "new"}, {"x": np.ones(10**5)}))
"""
)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path, step):
    write(tmp_path / "m", OLD)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "m"), step]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(signal.SIGKILL)
    assert read(tmp_path / "m").meta == {"age": "old"}
    assert len(list(tmp_path.iterdir())) == 2
    write(tmp_path / "other", OLD)
    # a draft of another file is left to the writers of that one
    assert len(list(tmp_path.iterdir())) == 3
    write(tmp_path / "m", SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "other"]


def test_the_draft_of_a_writer_at_work_is_left_alone(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "m"), "replace"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "stuck\n"
        write(tmp_path / "m", OLD)
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(signal.SIGKILL)


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    def written(place: int) -> None:
        for step in range(20):
            write(
                tmp_path / "m",
                Content("example", {"by": place, "step": step}, {"x": np.full(50, place)}),
            )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(written, range(8)))
    content = read(tmp_path / "m")
    assert content.arrays["x"].tolist() == [content.meta["by"]] * 50
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
