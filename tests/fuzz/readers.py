"""Every reader of foreign bytes: how it is called, what damages its input, and which errors it may raise."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import dualmx as mx
from dualmx import nd
from dualmx.contrib import onnx as onnx_files
from dualmx.contrib import safetensors, stablehlo
from dualmx.core import job_status
from dualmx.core.errors import ArgumentError, FormatError, MXNetError
from dualmx.distributed import FileStore
from dualmx.gluon.data.vision import CIFAR10, MNIST
from dualmx.io import arrow_columns, image_codec, parquet
from dualmx.io.recordio import encode_record, offsets, shard_start
from dualmx.kvstore import optimizer_config, states
from dualmx.launch.hostfile import read_hosts
from dualmx.lightning import checkpoint
from dualmx.optimizer.state_file import load_states
from dualmx.parallel.object_codec import decode as decode_object
from dualmx.predictor import Predictor, load_ndarray_file
from dualmx.ps import status as ps_status
from dualmx.ps.elastic_worker import ElasticWorker
from dualmx.ps.heartbeat import WorkerStatus
from dualmx.ps.journal import Journal
from dualmx.ps.scheduler_state import SchedulerState
from dualmx.ps.server import KVServer
from dualmx.ps.van.frame import NOTICE, REQUEST, Decoder, Message
from dualmx.text.embedding import CustomEmbedding
from dualmx.tools import serve, status

from . import corpus, mutate

Corpus = Callable[[Path], list[bytes]]
Damage = Callable[[Random, bytes, Sequence[bytes]], bytes]


@dataclass(frozen=True)
class Reader:
    """A reader of foreign bytes.

    Attributes:
        name: for tables.
        read: called with the path of a file.
        corpus: makes good inputs.
        damage: makes a bad one of a good one.
        allowed: errors that it documents, beside `FormatError`.
        suffix: of the file.
        named: what errors say of the file's name; messages have none.
        factor: by which the library below goes beyond the bound of memory, as docs/faults.md tells.
    """

    name: str
    read: Callable[[Path], Any]
    corpus: Corpus
    damage: Damage = mutate.damaged
    allowed: tuple[type[Exception], ...] = ()
    suffix: str = ""
    named: str = "input"
    factor: float = 1.0


READERS: dict[str, Reader] = {}


def _reader(
    corpus: Corpus, damage: Damage = mutate.damaged, *allowed: type[Exception], **more: Any
) -> Callable[..., Any]:
    def register(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        name = read.__name__
        READERS[name] = Reader(name, read, corpus, damage, allowed, **more)
        return read

    return register


@_reader(corpus.params)
def params(path: Path) -> None:
    for value in _values(nd.load(path)):
        value.shape


def _values(found: Any) -> list[Any]:
    return list(found.values()) if isinstance(found, dict) else found


@_reader(corpus.params, named="")
def params_in_memory(path: Path) -> None:
    load_ndarray_file(path.read_bytes())


@_reader(corpus.parameters, mutate.damaged, MXNetError)
def parameters_of_a_block(path: Path) -> None:
    mx.gluon.nn.Dense(1, in_units=2).load_parameters(str(path))


@_reader(corpus.records)
def recordio(path: Path) -> None:
    reader = mx.recordio.MXRecordIO(str(path), "r")
    while reader.read() is not None:
        pass


@_reader(corpus.records)
def recordio_offsets(path: Path) -> None:
    assert offsets(path) == sorted(shard_start(path, 2, 0) + shard_start(path, 2, 1))


@_reader(corpus.index, mutate.reworded)
def recordio_index(path: Path) -> None:
    records = path.with_name("indexed.rec")
    if not records.exists():
        records.write_bytes(b"".join(map(encode_record, (b"one", b"", b"two"))))
    reader = mx.recordio.MXIndexedRecordIO(str(path), str(records), "r")
    for key in reader.keys[:50]:
        try:
            reader.read_idx(key)
        except FormatError as e:  # of the records, which have a name of their own
            assert "indexed.rec" in str(e)


@_reader(corpus.image_records, named="", factor=2.0)
def image_record(path: Path) -> None:
    mx.recordio.unpack_img(path.read_bytes())


@_reader(corpus.images, corpus.resized, named="", factor=2.0)
def image(path: Path) -> None:
    data = path.read_bytes()
    image_codec.decode(data, (1, 0, -1)[len(data) % 3])


@_reader(corpus.image_files, corpus.rerecorded, ArgumentError, factor=2.0)
def image_record_iter(path: Path) -> None:
    it = mx.io.ImageRecordIter(str(path), (3, 8, 8), 2, preprocess_threads=1)
    for _ in it:
        pass


@_reader(corpus.image_files_with_boxes, corpus.rerecorded, ArgumentError, factor=2.0)
def image_det_record_iter(path: Path) -> None:
    for _ in mx.io.ImageDetRecordIter(str(path), (3, 8, 8), 1, preprocess_threads=1):
        pass


@_reader(corpus.image_files, corpus.rerecorded, ArgumentError, factor=2.0)
def image_iter(path: Path) -> None:
    for _ in mx.image.ImageIter(2, (3, 8, 8), path_imgrec=str(path)):
        pass


@_reader(corpus.image_files_with_boxes, corpus.rerecorded, ArgumentError, factor=2.0)
def image_det_iter(path: Path) -> None:
    for _ in mx.image.ImageDetIter(1, (3, 8, 8), path_imgrec=str(path)):
        pass


@_reader(corpus.plain_arrays, corpus.damage_of_array, suffix=".npy")
def mean_image(path: Path) -> None:
    from dualmx.io.image_record_iter import _mean

    _mean(str(path))


@_reader(corpus.pictures, corpus.repacked, named="images-idx3")
def mnist(path: Path) -> None:
    labels = path.with_name("t10k-labels-idx1-ubyte")
    images = path.with_name("t10k-images-idx3-ubyte")
    if not labels.exists():
        labels.write_bytes(bytes.fromhex("0000080100000002") + b"\0\1")
    os.replace(path, images)
    try:
        MNIST(str(path.parent), train=False)
    finally:
        os.replace(images, path)


@_reader(corpus.cifar, named="test_batch")
def cifar(path: Path) -> None:
    name = path.with_name("test_batch.bin")
    os.replace(path, name)
    try:
        CIFAR10(str(path.parent), train=False)
    finally:
        os.replace(name, path)


@_reader(corpus.csv, mutate.reworded, ArgumentError)
def csv(path: Path) -> None:
    size = path.stat().st_size
    mx.io.CSVIter(data_csv=str(path), data_shape=(4,), dtype=("float32", "int32")[size % 2])


@_reader(corpus.libsvm, mutate.reworded)
def libsvm(path: Path) -> None:
    mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(5,))


@_reader(corpus.lists, mutate.reworded)
def image_list(path: Path) -> None:
    from dualmx.image.iterator import read_list
    from dualmx.io.image_record_iter import _labels_of

    _labels_of(path)
    read_list(path)


@_reader(corpus.symbols, mutate.rejsoned, MXNetError)
def symbol(path: Path) -> None:
    mx.sym.load(str(path)).list_arguments()


@_reader(corpus.small_symbol, mutate.rejsoned, MXNetError)
def predictor_symbol(path: Path) -> None:
    Predictor(path, corpus.small_params(path)[0], {"data": (1, 2)})


@_reader(corpus.small_params, mutate.damaged, MXNetError)
def predictor_params(path: Path) -> None:
    Predictor(corpus.small_symbol(path)[0].decode(), path, {"data": (1, 2)})


class _Served:
    """A network that is served, made when it is first asked."""

    model: Any = None

    @classmethod
    def of(cls, folder: Path) -> Any:
        if cls.model is None:
            prefix = str(folder / "served")
            Path(f"{prefix}-symbol.json").write_bytes(corpus.small_symbol(folder)[0])
            Path(f"{prefix}-0000.params").write_bytes(corpus.small_params(folder)[0])
            cls.model = serve.Model(prefix, 0, [serve.parse_input("data=2")], [1, 4], [], "cpu")
        return cls.model


@_reader(corpus.questions, mutate.rejsoned, MXNetError, named="")
def request_as_json(path: Path) -> None:
    _Served.of(path.parent).predict(serve._json(path.read_bytes()))


@_reader(corpus.archives, corpus.rezipped, MXNetError, named="")
def request_as_npz(path: Path) -> None:
    _Served.of(path.parent).predict(serve._arrays(path.read_bytes(), 64 << 20))


@_reader(corpus.onnx_models, corpus.remodelled, MXNetError)
def onnx(path: Path) -> None:
    onnx_files.get_model_metadata(str(path))
    onnx_files.import_model(str(path))


@_reader(corpus.tensors, corpus.retensored)
def safetensors_file(path: Path) -> None:
    safetensors.load(path)


@_reader(corpus.programs)
def stablehlo_program(path: Path) -> None:
    stablehlo.import_model(path)


@_reader(corpus.tables, corpus.retabled, ArgumentError)
def parquet_file(path: Path) -> None:
    for block in parquet.ParquetReader(path).blocks():
        assert block


@_reader(corpus.arrays, corpus.damage_of_array, named="")
def array_in_a_column(path: Path) -> None:
    arrow_columns._decoded("c", [path.read_bytes()])


@_reader(corpus.snapshots, corpus.rezipped)
def store_snapshot(path: Path) -> None:
    states.read_snapshot(str(path))


@_reader(corpus.states, corpus.repickled, named="")
def optimizer_states(path: Path) -> None:
    load_states(path.read_bytes())


@_reader(corpus.states, corpus.repickled)
def trainer_states(path: Path) -> None:
    weight = mx.gluon.Parameter("w", shape=(2, 3))
    weight.initialize()
    trainer = mx.gluon.Trainer([weight], "sgd", kvstore=None)
    trainer.load_states(str(path))


@_reader(corpus.descriptions, mutate.rejsoned, MXNetError, named="described")
def model_description(path: Path) -> None:
    prefix = str(path.parent / "described")
    if not os.path.exists(f"{prefix}-model.params"):
        corpus.model_block().save(prefix)
    os.replace(path, f"{prefix}-model.json")
    try:
        corpus.model_block().load(prefix)
    finally:
        os.replace(f"{prefix}-model.json", path)


@_reader(corpus.vectors, mutate.reworded)
def word_vectors(path: Path) -> None:
    CustomEmbedding(str(path))


@_reader(corpus.saved, corpus.resaved)
def lightning_checkpoint(path: Path) -> None:
    found = checkpoint.read(str(path))
    checkpoint.progress_of(found)
    checkpoint.hyperparameters_of(found)


@_reader(corpus.objects, corpus.reobjected, named="")
def object_of_a_process(path: Path) -> None:
    decode_object(np.frombuffer(path.read_bytes(), np.uint8))


@_reader(corpus.stored, mutate.reworded)
def file_store(path: Path) -> None:
    FileStore(str(path)).num_keys()


@_reader(corpus.hosts, mutate.reworded, ArgumentError)
def host_file(path: Path) -> None:
    read_hosts(path)


@_reader(corpus.running, mutate.rejsoned)
def running_jobs(path: Path) -> None:
    os.environ["XDG_CONFIG_HOME"] = str(path.parent)
    noted = job_status.folder() / f"{os.getpid()}.json"
    noted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    noted.write_bytes(path.read_bytes())
    noted.chmod(0o600)
    job_status.running_jobs()


@_reader(corpus.frames, corpus.reframed, named="")
def frames(path: Path) -> None:
    data, decoder = memoryview(path.read_bytes()), Decoder()
    step = 1 + len(data) % 7 * 300
    while data:
        room = decoder.buffer()
        n = min(len(data), len(room), step)
        room[:n] = data[:n]
        data = data[n:]
        message = decoder.advance(n)
        if message is not None:
            _taken_apart(message)


def _taken_apart(message: Message) -> None:
    pieces = message.pieces()
    while pieces.left:
        pieces.read(1 + pieces.left // 2)


@_reader(corpus.frames, corpus.reframed, named="")
def frames_at_once(path: Path) -> None:
    data, decoder = memoryview(path.read_bytes()), Decoder()
    while data:
        message, size = decoder.decode_complete(data)
        if message is None:
            break
        _taken_apart(message)
        data = data[size:]


class _Wire:
    """Takes what a server sends, to nobody."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, link: int, message: Message) -> None:
        self.sent.append(message)

    def answer(self, link: int, message: Message) -> None:
        self.sent.append(message)

    def drop(self, link: int) -> None:
        pass

    def alloc(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def has_shm_readers(self) -> bool:
        return False


def _server(journal: Journal | None = None) -> KVServer:
    from dualmx.kvstore.server_updates import OptimizerRequests

    return KVServer(_Wire(), 1, OptimizerRequests(), journal)  # type: ignore[arg-type]


@_reader(corpus.requests, corpus.reasked, named="")
def server_requests(path: Path) -> None:
    server = _server()
    server.on_message(1, Message(REQUEST, 0, {"op": "hello", "rank": 0, "life": 1}))
    for number, (meta, payload) in enumerate(json.loads(path.read_bytes()), 1):
        if isinstance(meta, dict):
            data = bytes.fromhex(payload)
            server.on_message(1, Message(REQUEST, number, meta, [data] if data else [], size=len(data)))


@_reader(corpus.journals, corpus.rejournaled, MXNetError, named="journal")
def server_journal(path: Path) -> None:
    with contextlib.closing(_journal(path)) as journal:
        _server(journal).restore()


def _journal(path: Path) -> Journal:
    folder = path.parent / "journal"
    folder.mkdir(exist_ok=True)
    (folder / "server-0.0.journal").write_bytes(path.read_bytes())
    return Journal(folder, 0)


@_reader(corpus.ledgers, corpus.reledgered, MXNetError, named="journal")
def scheduler_journal(path: Path) -> None:
    with contextlib.closing(_journal(path)) as journal:
        SchedulerState(1, 1, True, journal).replay()


@_reader(corpus.configs, mutate.rejsoned, ArgumentError, named="")
def optimizer_of_a_worker(path: Path) -> None:
    try:
        told = json.loads(path.read_bytes())
    except (ValueError, RecursionError):  # which the decoder of frames refuses
        return
    optimizer_config.from_config(told)


def _said(path: Path) -> Message | None:
    try:
        told = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return Message(NOTICE, 0, told) if isinstance(told, dict) else None


@_reader(corpus.pulses, mutate.rejsoned, named="")
def pulses(path: Path) -> None:
    message = _said(path)
    if message is not None:
        pulse = WorkerStatus()
        pulse.update(message)
        json.dumps(pulse.as_dict(1e9))


@_reader(corpus.batches, mutate.rejsoned, named="")
def batches_of_a_job(path: Path) -> None:
    try:
        told = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    if isinstance(told, list) and len(told) > 1 and all(isinstance(one, dict) for one in told):
        now, *pages = (Message(NOTICE, 0, one) for one in told)
        answers = iter(pages)
        batches = ElasticWorker(
            0,
            2,
            True,
            lambda ended, marks: now,
            lambda start: next(answers, pages[-1]),
            lambda number, used, stores: None,
        )
        batches.begin()


@_reader(corpus.jobs, mutate.rejsoned, named="")
def status_of_a_job(path: Path) -> None:
    try:
        job, servers = json.loads(path.read_bytes())
    except (ValueError, TypeError, RecursionError):
        return
    found = ps_status.summary("host:1", job, servers, servers, 1.0)
    status.page(found, "python a.py")


@_reader(corpus.initializers, mutate.rejsoned, MXNetError, named="")
def initializer_text(path: Path) -> None:
    mx.init.create(path.read_text("utf-8", "replace"))


__all__ = ["READERS", "Reader"]
