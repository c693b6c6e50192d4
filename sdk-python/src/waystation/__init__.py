"""The client of Waystation, the backend that software agents lack."""

from . import types
from ._async.client import AsyncWaystation
from ._async.events import AsyncEventList, AsyncEvents, AsyncEventWait
from ._async.inboxes import AsyncMessages
from ._async.pages import AsyncPages
from ._callbacks import CallbackVerificationError, VerificationFailure, VerifiedCallback, verify_callback
from ._effect_errors import (
    EffectError,
    EffectFailedError,
    EffectInFlightError,
    EffectRejectedError,
    EffectUnknownError,
    EffectUnrecordedError,
    NotDone,
)
from ._errors import WaystationError, WaystationNetworkError, WaystationTimeoutError, has_code
from ._json import ExactFloat, RawJson
from ._signal import Aborted, Signal
from ._sync.client import Waystation
from ._sync.events import EventList, Events, EventWait
from ._sync.inboxes import Messages
from ._sync.pages import Pages
from ._values import (
    NOT_GIVEN,
    CallOptions,
    CreateOptions,
    EventsPage,
    GiveUp,
    NotGiven,
    Page,
    Permit,
    RateLimitResult,
    ThrownMeans,
    WaitOptions,
    WorkContext,
    WorkSummary,
)

__all__ = [
    "NOT_GIVEN",
    "Aborted",
    "AsyncEventList",
    "AsyncEventWait",
    "AsyncEvents",
    "AsyncMessages",
    "AsyncPages",
    "AsyncWaystation",
    "CallOptions",
    "CallbackVerificationError",
    "CreateOptions",
    "EffectError",
    "EffectFailedError",
    "EffectInFlightError",
    "EffectRejectedError",
    "EffectUnknownError",
    "EffectUnrecordedError",
    "EventList",
    "EventWait",
    "Events",
    "EventsPage",
    "ExactFloat",
    "GiveUp",
    "Messages",
    "NotDone",
    "NotGiven",
    "Page",
    "Pages",
    "Permit",
    "RateLimitResult",
    "RawJson",
    "Signal",
    "ThrownMeans",
    "VerificationFailure",
    "VerifiedCallback",
    "WaitOptions",
    "Waystation",
    "WaystationError",
    "WaystationNetworkError",
    "WaystationTimeoutError",
    "WorkContext",
    "WorkSummary",
    "has_code",
    "types",
    "verify_callback",
]
