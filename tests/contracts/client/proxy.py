"""A proxy that misbehaves as networks do."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading


class Proxy:
    """Passes bytes on to a server, and can be told to cut every connection after some bytes of the answer or of the request, or to swallow everything.

    `heard` counts the bytes of requests.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_after: int | None = None
        self.cut_request_after: int | None = None
        self.swallow = False
        self.heard = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Close every connection, and take new ones."""
        for open_socket in self._sockets:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)

    def is_noticed(self) -> bool:
        """Whether the other side has closed what was cut, too."""
        half_closed = (4, 5)  # FIN_WAIT1 and FIN_WAIT2
        return not any(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in half_closed for near in self._sockets[::2])

    def close(self) -> None:
        for open_socket in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [near, far]
            for source, target, is_answer in ((near, far, False), (far, near, True)):
                self._threads.append(threading.Thread(target=self._pump, args=(source, target, is_answer)))
                self._threads[-1].start()

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.swallow:
                    continue
                limit = self.cut_after if is_answer else self.cut_request_after
                if limit is not None:
                    data = data[: max(limit - passed, 0)]
                self.heard += 0 if is_answer else len(data)  # before the answer to it can be there
                target.sendall(data)
                passed += len(data)
                if limit is not None and passed >= limit:
                    # As a process that dies does it: what is still sent to it is refused, and not only left unread.
                    source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if not is_answer and self.cut_request_after is not None:
            source.close()
