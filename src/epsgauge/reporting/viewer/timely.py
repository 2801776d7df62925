"""Connections: a client that does not send the head of its request in time is dropped."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 10.0  # seconds


class Timely(H11Protocol):
    """HTTP as uvicorn speaks it, which waits for ever for a client that says nothing."""

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The time runs from the first byte of a request on, whatever comes after it, until its head is there."""
        answered = self.cycle is not None and self.cycle.response_complete  # what comes now nobody asked for
        if self.conn.their_state is not h11.IDLE and not answered:
            self._in_time()
        elif self.late is None:
            self.late = self.loop.call_later(HEAD_WITHIN, self._drop)

    def _in_time(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def _drop(self) -> None:
        self.late = None
        self.transport.abort()
