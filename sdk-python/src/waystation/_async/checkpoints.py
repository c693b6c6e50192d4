"""client.checkpoints"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from .._values import NOT_GIVEN, AskOptions, CallOptions, NotGiven, WaitOptions, ask_options, check_options
from ..types import Checkpoint, EscalationStep
from . import resources
from .look import held_seconds, look_until, patient

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncCheckpoints(resources.AsyncCheckpoints):
    async def ask(
        self,
        *,
        title: str,
        callback_url: str | None = None,
        prompt: str | None = None,
        callback_payload: object | NotGiven = NOT_GIVEN,
        timeout_action: Literal["auto_reject", "dlq"] | None = None,
        timeout_seconds: int | None = None,
        expires_at: str | datetime | None = None,
        workflow_id: str | None = None,
        answer_schema: Mapping[str, object] | NotGiven | None = NOT_GIVEN,
        required_approvals: int | None = None,
        required_rejections: int | None = None,
        approvers: Sequence[str] | None = None,
        escalate: Sequence[EscalationStep] | None = None,
        **options: Unpack[AskOptions],
    ) -> Checkpoint:
        """Asks a human and waits for the decision, as `wait_for` does. The decision is sent nowhere unless there is a
        `callback_url`. After a restart, the same `idempotency_key` waits for the same question."""
        check_options(options, ask_options)
        held_seconds(options.get("wait_seconds"))  # before a person is asked
        call: CallOptions = {
            "signal": options.get("signal"),
            "timeout_ms": options.get("timeout_ms"),
            "request_id": options.get("request_id"),
            "retries": options.get("retries"),
        }
        created = await self.create(
            title=title,
            callback_url=callback_url,
            prompt=prompt,
            callback_payload=callback_payload,
            timeout_action=timeout_action,
            timeout_seconds=timeout_seconds,
            expires_at=expires_at,
            workflow_id=workflow_id,
            answer_schema=answer_schema,
            required_approvals=required_approvals,
            required_rejections=required_rejections,
            approvers=approvers,
            escalate=escalate,
            idempotency_key=options.get("idempotency_key"),
            **call,
        )
        return await self.wait_for(created["id"], wait_seconds=options.get("wait_seconds"), **call)

    async def wait_for(self, id: str, **options: Unpack[WaitOptions]) -> Checkpoint:
        """Waits until it is approved, rejected, expired or cancelled, however long that takes; a signal ends the wait. An
        unavailable service is tried again for about a minute, unless `retries` says otherwise."""
        wait = held_seconds(options.get("wait_seconds"))
        call = patient(options)

        async def look() -> Checkpoint:
            return await self.get(id, wait=wait, **call)

        def is_done(checkpoint: Checkpoint) -> bool:
            return checkpoint["status"] != "pending"

        return await look_until(self._transport.platform, look, is_done, call.get("signal"))
