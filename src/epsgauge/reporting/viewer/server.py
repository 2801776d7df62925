"""Serves the viewer on 127.0.0.1, and says at which address."""

from __future__ import annotations

import errno
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import uvicorn

HOST = "127.0.0.1"
MISSING = "this needs Starlette and uvicorn. Install them with: pip install '.[view]' in the folder of epsgauge"


class Viewer:
    """A viewer of one folder, bound to its port before it is served; `address` has the token, which is good once.

    `apart`: runs are audited by processes of their own.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        port: int = 0,
        announce: Callable[[str], None] = lambda _: None,
        apart: bool = False,
    ) -> None:
        try:
            import uvicorn

            from epsgauge.reporting.viewer.guard import Guard, Keys
            from epsgauge.reporting.viewer.pages import Pages
            from epsgauge.reporting.viewer.timely import Timely
        except ImportError as error:
            if isinstance(error, MissingExtra):
                raise
            raise MissingExtra(MISSING) from None
        from epsgauge.reporting.viewer.apart import Apart
        from epsgauge.reporting.viewer.cache import Cache
        from epsgauge.reporting.viewer.runs import Folder

        pages = Pages(Folder(folder, Cache.of_user()), Apart() if apart else None)
        self._socket = _bound(port)
        self.port = int(self._socket.getsockname()[1])
        self.keys = Keys(self.port, announce)
        self._server: uvicorn.Server = uvicorn.Server(
            uvicorn.Config(
                Guard(pages.app(), self.keys),
                http=Timely,
                ws="none",
                lifespan="off",
                access_log=False,  # an address may have the token in it
                log_level="error",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=1,
            )
        )

    @property
    def address(self) -> str:
        return self.keys.address

    @property
    def started(self) -> bool:
        return bool(self._server.started)

    def serve(self) -> None:
        """Until it is stopped; Ctrl-C is the usual end, and no error."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def stop(self) -> None:
        self._server.should_exit = True


def serve(
    folder: str | os.PathLike[str], *, port: int = 0, open_browser: bool = True, say: Callable[[str], None] = print
) -> None:
    """Serve a folder until Ctrl-C."""
    announce = lambda new: say(f"the address was used twice; a new one: {new}")  # noqa: E731
    viewer = Viewer(folder, port=port, announce=announce, apart=True)
    say(f"viewing {folder} at {viewer.address}")
    say("Ctrl-C ends it. The address works once, on this machine alone.")
    with TemporaryDirectory(prefix="epsgauge-") as own:
        if open_browser:
            # the socket listens already, so that a browser that is quicker than we are waits
            file = opening(viewer.address, Path(own))
            opener = threading.Thread(
                target=webbrowser.open, args=(file.as_uri(),), name="opens a browser", daemon=True
            )
            opener.start()
        viewer.serve()


def opening(address: str, folder: Path) -> Path:
    """A page that leads to the address and that nobody else can read: who opens it shows no token in a command line."""
    from epsgauge.reporting.viewer.render import page

    file = folder / "open.html"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(page("opening.html.j2", target=address))
    return file


def _bound(port: int) -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((HOST, port))
        own.listen(128)
    except OSError as error:
        own.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(f"port {port} is in use. Use another --port, or 0 for any that is free.") from None
        raise InvalidInput(f"port {port} cannot be used: {error.strerror}. Use another --port.") from None
    return own
