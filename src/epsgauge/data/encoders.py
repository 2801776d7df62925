"""Where a pretrained encoder is: a folder, a folder inside an installed package, or a name on the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from epsgauge.data.files import located
from epsgauge.data.hugging_face import need_transformers, quiet, reason
from epsgauge.errors import InvalidInput
from epsgauge.references import plan_folder

_PACKAGED = re.compile(r"([A-Za-z_][\w.]+):(.+)")
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# What is had from the hub: settings, words and weights. Everything else may be code or a pickle.
_WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]


def check_name(encoder: object) -> None:
    if not isinstance(encoder, str) or not encoder:
        raise InvalidInput(
            'encoder must be a folder, a name on the hub such as "roberta-base", or "package:folder", but got '
            f"{encoder!r}."
        )


def encoder_folder(encoder: str) -> Path:
    """The folder with config.json, the tokenizer's files and weights as safetensors.

    A relative folder is seen from the plan's folder, else from the current one.
    """
    check_name(encoder)
    folder = _found(encoder)
    if not (folder / "config.json").is_file():
        raise InvalidInput(f"the folder of encoder {encoder} must hold config.json, but {folder} does not.")
    if not any(folder.glob("*.safetensors")):
        raise InvalidInput(
            f"encoder {encoder} must have its weights as .safetensors, but {folder} has none. Weights in .bin and .pt "
            "files are pickles, which are not read: save them again with save_pretrained."
        )
    return folder


def _found(encoder: str) -> Path:
    packaged = _PACKAGED.fullmatch(encoder)
    if packaged:
        return _in_package(encoder, *packaged.groups())
    if ((plan_folder() or Path()) / Path(encoder).expanduser()).is_dir() or not _ON_THE_HUB.fullmatch(encoder):
        return located(encoder, "the folder of the encoder")
    return _from_hub(encoder)


def _in_package(encoder: str, package: str, inside: str) -> Path:
    """The package itself is not imported: only its place is asked for."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        spec = None
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        raise InvalidInput(
            f"the package of encoder {encoder} must be installed, but there is no package {package!r}. Install it, or "
            "give a folder."
        )
    for place in places:
        if (Path(place) / inside).is_dir():
            return Path(place) / inside
    raise InvalidInput(f"encoder {encoder} must be a folder of its package, but {places[0]} has no {inside!r}.")


def _from_hub(encoder: str) -> Path:
    need_transformers()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        with quiet():
            return Path(snapshot_download(encoder, allow_patterns=_WANTED, ignore_patterns=["*/*"]))
    except Exception as error:  # no network, no such name, a gate, a full disk: each has its own kind
        offline = isinstance(error, LocalEntryNotFoundError)
        why = "it is not in the local cache, and the hub cannot be reached" if offline else reason(error)
        raise InvalidInput(
            f'encoder {encoder} must be a folder, a name on the hub or "package:folder", but there is no such folder, '
            f"and the hub did not give it: {why}."
        ) from error
