"""Torch as a sandboxed script gets it: on the CPU, uncompiled, without workers, and with its files in the overlay."""

from __future__ import annotations

import copyreg
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from epsgauge.trainers.after_import import AfterImport

Place = Callable[[Any, bool], Any]  # where a path lies, and whether it will be written
Note = Callable[[str], None]
CUDA = "CUDA was mapped to the CPU"
UNCOMPILED = "torch.compile was left out"
_DEVICES = ("cuda", "mps", "xpu")
_MAKERS = (
    *("zeros", "ones", "full", "empty", "empty_strided", "eye", "arange", "linspace", "logspace", "tril_indices"),
    *("tensor", "as_tensor", "asarray", "rand", "randn", "randint", "randperm", "normal", "triu_indices"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like"),
)
_NEW = ("new_tensor", "new_zeros", "new_ones", "new_full", "new_empty")
_OF_WORKERS = (
    "num_workers",
    "persistent_workers",
    "prefetch_factor",
    "multiprocessing_context",
    "timeout",
    "pin_memory",
)
# Compiled functions that open files themselves: the argument that is a path, and whether they write it.
_COMPILED = {
    "torch.jit": [("load", 0, False), ("RecursiveScriptModule.save", 1, True)],
    "safetensors._safetensors_rust": [("serialize_file", 1, True), ("safe_open", 0, False)],
    "tokenizers.tokenizers": [
        ("Tokenizer.save", 1, True),
        ("Tokenizer.from_file", 0, False),
        ("models.Model.save", 1, True),
    ],
    "pyarrow.lib": [("memory_map", 0, False)],
}
_kept: list[Any] = []  # functions that torch knows by their address


@contextmanager
def patched(note: Note, place: Place) -> Iterator[None]:
    """Meanwhile torch, if the script imports it, stays on the CPU; `note` is told what was changed."""
    undo: list[Callable[[], None]] = []

    def put(owner: Any, name: str, new: Any) -> None:
        here, before = name in vars(owner), getattr(owner, name)
        if isinstance(vars(owner).get(name), staticmethod):
            before, new = staticmethod(before), staticmethod(new)
        setattr(owner, name, new)
        undo.append(lambda: setattr(owner, name, before) if here else delattr(owner, name))

    def compiled(module: Any) -> None:
        for path, index, writes in _COMPILED.get(module.__name__, ()):
            owner, _, name = path.rpartition(".")
            holder = attrgetter(owner)(module) if owner else module
            put(holder, name, _placed(getattr(holder, name), index, writes, place))

    def on_torch(torch: Any) -> None:
        _on_cpu(torch, put, note, place)
        _uncompiled(torch, put, note)
        compiled(torch.jit)
        writer = torch._C.PyTorchFileWriter

        def init(self: Any, name: Any, *args: Any, **named: Any) -> None:
            writer.__init__(self, place(name, True), *args, **named)

        put(torch._C, "PyTorchFileWriter", type("PyTorchFileWriter", (writer,), {"__init__": init}))

    hooks = {"torch": on_torch, **{name: compiled for name in _COMPILED if name != "torch.jit"}}
    finder: Any = AfterImport(hooks)
    try:
        finder.start()
        yield
    finally:
        sys.meta_path.remove(finder)
        for step in reversed(undo):
            step()


def _placed(original: Callable[..., Any], index: int, writes: bool, place: Place) -> Callable[..., Any]:
    @functools.wraps(original, updated=())
    def call(*args: Any, **named: Any) -> Any:
        named |= {key: place(named[key], writes) for key in ("filename", "path", "f") if key in named}
        return original(*(place(value, writes) if i == index else value for i, value in enumerate(args)), **named)

    return call


def _on_cpu(torch: Any, put: Callable[[Any, str, Any], None], note: Note, place: Place) -> None:
    device_type = torch.device

    def cpu(device: Any) -> Any:
        name = device.type if isinstance(device, device_type) else device
        named = isinstance(name, str) and name.split(":")[0] in _DEVICES
        if not named and (not isinstance(name, int) or isinstance(name, bool)):
            return device
        note(CUDA)
        return device_type("cpu")

    def stay(self: Any, *_: Any, **__: Any) -> Any:
        note(CUDA)
        return self

    def first(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **named: Any) -> Any:
            named |= {"device": cpu(named["device"])} if "device" in named else {}
            return original(self, *map(cpu, args[:1]), *args[1:], **named)

        return call

    def keyword(original: Any) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **named: Any) -> Any:
            if named.get("device") is not None:
                named["device"] = cpu(named["device"])
            return original(*args, **named)

        if name := torch.jit._builtins._find_builtin(original):  # scripted functions call it
            torch.jit._builtins._register_builtin(call, name)
            _kept.append(call)
        return call

    class Generator(torch.Generator):  # type: ignore[misc]
        """One that draws seeds as Python does, so that they can be chosen."""

        drawn = False

        def manual_seed(self, seed: int) -> Any:
            self.drawn = False
            return super().manual_seed(seed)

        def seed(self) -> int:
            self.manual_seed(value := int.from_bytes(os.urandom(8)) >> 1)
            self.drawn = True
            return value

    def seeming(kind: Any, real: Any) -> Any:
        """A class that makes objects of the real one, on the CPU, and has those of this kind."""

        class Seeming(type):
            def __call__(cls, *args: Any, **named: Any) -> Any:
                values = [*args, *named.values()]
                return real("cpu") if values and cpu(values[0]) is not values[0] else real(*args, **named)

            def __instancecheck__(cls, value: Any) -> bool:
                return isinstance(value, kind)

        return Seeming(kind.__name__, (), {"__module__": "torch", "__doc__": kind.__doc__})

    for owner in (torch.Tensor, torch.nn.Module):
        put(owner, "to", first(owner.to))
        for name in ("cuda", "xpu"):
            put(owner, name, stay)
    for name in _NEW:
        put(torch.Tensor, name, keyword(getattr(torch.Tensor, name)))
    put(torch.Tensor, "pin_memory", lambda self, *_, **__: self)
    for name in _MAKERS:
        put(torch, name, keyword(getattr(torch, name)))
    put(torch, "set_default_device", lambda device, set_default=torch.set_default_device: set_default(cpu(device)))
    for name, real in (("device", device_type), ("Generator", Generator)):
        put(torch, name, seeming(getattr(torch, name), real))
    copyreg.pickle(device_type, lambda device: (torch.device, (str(device),)))
    answers = {"is_available": False, "device_count": 0, "current_device": 0, "get_device_name": "CPU"}
    for name, value in answers.items():
        put(torch.cuda, name, lambda *_, value=value, **__: value)
    for name in ("set_device", "synchronize", "reset_peak_memory_stats"):
        put(torch.cuda, name, lambda *_, **__: None)
    put(torch.backends.mps, "is_available", lambda: False)
    load = torch.load

    @functools.wraps(load)
    def on_cpu(f: Any, map_location: Any = None, *args: Any, **named: Any) -> Any:
        return load(place(f, False), map_location if callable(map_location) else "cpu", *args, **named)

    put(torch, "load", on_cpu)


def _uncompiled(torch: Any, put: Callable[[Any, str, Any], None], note: Note) -> None:
    """Without compiled models, threads of its own and workers, all of which a fork would lose."""

    def identity(model: Any = None, **_: Any) -> Any:
        note(UNCOMPILED)
        return (lambda given: given) if model is None else model

    put(torch, "compile", identity)
    put(torch.nn.Module, "compile", lambda *_, **__: note(UNCOMPILED))
    for name in ("set_num_threads", "set_num_interop_threads"):
        put(torch, name, lambda _: None)
    loader = torch.utils.data.DataLoader
    original, signature = loader.__init__, inspect.signature(loader.__init__)

    @functools.wraps(original)
    def init(*args: Any, **named: Any) -> None:
        given = signature.bind(*args, **named).arguments
        if given.get("num_workers"):
            note("DataLoader workers were left out: num_workers=0")
        original(**{name: value for name, value in given.items() if name not in _OF_WORKERS})

    put(loader, "__init__", init)
