"""The environment of the client: HTTP, clock, waits, background work. Its twin for tasks is beside it, in `_async`."""

from __future__ import annotations

import inspect
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import httpx

from .._forks import GivenClient, Process, process
from .._functions import check_runs, is_async
from .._outcome import NeverSent, Received, Steps, TimedOut
from .._settings import elapsed_ms
from .._signal import Latch, Signal

T = TypeVar("T")

limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
"""Requests that the service holds must not keep the extension of a lock from being sent."""


class Connections:
    """The httpx clients of each process. A child that went on with the connections of its parent would read answers to the
    parent and to its other children for its own. The main thread has one to itself: handlers of signals run there alone, and an
    interrupt may leave a lock of httpx held, for which every other thread would wait for ever."""

    def __init__(self, given: httpx.Client | None) -> None:
        self._given = given
        self._use = GivenClient()
        self._own: dict[tuple[Process, bool], httpx.Client] = {}
        self._closed = False
        if given is None:
            self._certificates = httpx.create_ssl_context()
            self.client()

    def __reduce__(self) -> NoReturn:
        """Of a pickle, into which a task for another process or machine takes a client by its arguments or its closure."""
        raise TypeError("A client of Waystation cannot be pickled: make one where it is used, from its url and key.")

    def client(self) -> httpx.Client:
        """Raises RuntimeError once it is closed, and for a given client that the parent of this process has used."""
        if self._given is not None:
            self._use.use()
            return self._given
        here = _here()
        found = self._own.get(here)
        if found is not None:
            return found
        if self._closed:
            raise RuntimeError("The client is closed.")
        # Of threads that come here together all get the same one. Without the parent's, its connections end with it.
        found = self._own.setdefault(here, httpx.Client(limits=limits, verify=self._certificates))
        for known in list(self._own):
            if known[0] != here[0]:
                self._own.pop(known, None)
        return found

    def leave(self) -> None:
        """After an interrupt in the midst of a call, which may have met httpx between two steps that belong together: a lock of
        it that nobody holds any more would let the next call wait for ever. So that one gets connections of its own."""
        self._own.pop(_here(), None)

    def close(self) -> None:
        """Closes the connections of this process, unless the client was given."""
        self._closed = True
        here = process()
        own = [self._own.pop(known, None) for known in list(self._own) if known[0] == here]
        self._own.clear()
        for client in own:
            if client is not None:
                client.close()


def _here() -> tuple[Process, bool]:
    """This process, and true for its main thread."""
    return process(), threading.get_ident() == threading.main_thread().ident


class Platform:
    """Tests give their own."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @property
    def client(self) -> httpx.Client:
        """That of this process."""
        return self._connections.client()

    def now_ms(self) -> float:
        """By a clock that is never set back."""
        return elapsed_ms()

    def wall_ms(self) -> float:
        return time.time() * 1_000

    def random(self) -> float:
        """0 up to 1, for jitter alone."""
        return random.random()

    def uuid(self) -> str:
        """Cannot be guessed."""
        return str(uuid.uuid4())

    def sleep(self, ms: float, signal: Signal | None = None) -> None:
        """Raises the signal's reason when it is aborted."""
        if signal is None:
            time.sleep(ms / 1_000)
            return
        signal.wait(ms / 1_000)
        signal.raise_if_aborted()

    def send(self, request: httpx.Request, timeout_ms: float, signal: Signal | None) -> Received:
        """Raises TimedOut, NeverSent, the signal's reason, and what httpx raises."""
        steps = Steps()
        deadline_ms = elapsed_ms() + timeout_ms
        timeouts = httpx.Timeout(timeout_ms / 1_000).as_dict()

        def each_step(name: str, info: dict[str, Any]) -> None:
            """httpx counts a time-out for each step of a request: what is left is that of the next one. A request that was
            given up is not begun any more."""
            steps.note(name, info)
            left_seconds = max(1, deadline_ms - elapsed_ms()) / 1_000
            timeouts.update({name: left_seconds for name in timeouts})

        request.extensions["timeout"] = timeouts
        request.extensions["trace"] = each_step
        if signal is None:
            return self._send(request, steps, deadline_ms)
        try:
            return self._send_beside(request, steps, deadline_ms, signal)
        finally:
            steps.give_up()

    def _send_beside(self, request: httpx.Request, steps: Steps, deadline_ms: float, signal: Signal) -> Received:
        """In a thread of its own: a read that blocks ends with its time-out alone, and the signal is not to wait for that."""
        over = Latch()
        outcome: list[Received | BaseException] = []

        def run() -> None:
            try:
                outcome.append(self._send(request, steps, deadline_ms))
            except BaseException as error:
                outcome.append(error)
            over.open()

        threading.Thread(target=run, name="waystation-call", daemon=True).start()
        forget = signal.listen(over.open)
        try:
            is_over = over.wait(max(0, deadline_ms - elapsed_ms()) / 1_000)
        finally:
            forget()
        signal.raise_if_aborted()
        if not is_over:
            raise steps.timed_out(request)
        (found,) = outcome
        if isinstance(found, BaseException):
            raise found
        return found

    def _send(self, request: httpx.Request, steps: Steps, deadline_ms: float) -> Received:
        try:
            response = self.client.send(request, stream=True, follow_redirects=False)
            chunks: list[bytes] = []
            try:
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    if elapsed_ms() > deadline_ms:
                        raise TimedOut
            finally:
                response.close()
        except httpx.HTTPError as error:
            if steps.never_sent(error):
                raise NeverSent(error) from error
            raise
        except (httpx.InvalidURL, TimedOut):
            raise
        except BaseException:
            # A handler of signals may raise an Exception as well, as Celery does at a soft time limit.
            self._connections.leave()
            raise
        return Received(response.status_code, response.headers, b"".join(chunks).decode("utf-8", "replace"))


def settled(value: T) -> T:
    """The value that a function of the caller returned. Raises TypeError for one that has to be awaited: nothing of it ran,
    and it must not look as if it had."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"a {type(value).__name__} has to be awaited: functions that are async need AsyncWaystation")
    return value


def check_function(function: Callable[..., object]) -> None:
    """Raises TypeError for a function that would never run, before anything is claimed for it."""
    check_runs(function)
    if is_async(function):
        raise TypeError("functions that are async need AsyncWaystation")


def finished(value: T) -> T:
    """What came of work that is not cut off: the async client has to see to that."""
    return value


class Background:
    """Work that goes on beside its caller."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        # Up to Python 3.12 a thread whose join() meets an interrupt is taken for one that has ended.
        self._over = threading.Event()
        threading.Thread(target=self._run, args=[work], name="waystation-lock", daemon=True).start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def wait(self) -> None:
        """Waits for its end."""
        self._over.wait()

    def join(self) -> None:
        """Waits for its end, which comes soon: it was asked to end. Raises its error."""
        self.wait()
        if self._error:
            raise self._error


def all_of(works: Sequence[Callable[[], None]], ended: Signal) -> None:
    """Runs them at the same time, waits for all, and raises the first error. An interrupt ends the work, and waits for
    what is in progress."""
    if len(works) == 1:
        works[0]()
        return
    threads: list[Background] = []
    try:
        threads.extend(Background(work) for work in works)
        for thread in threads:
            thread.wait()
    except BaseException:
        ended.abort()
        for thread in threads:
            thread.wait()
        raise
    for thread in threads:
        thread.join()
