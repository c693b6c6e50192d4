"""When a request whose outcome is unknown is sent again."""

# Made from openapi.json by scripts/clients.ts: do not edit.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ._repeats import Done, Retry

retries: Final[Mapping[str, Retry]] = {
    "deleteTenant": Retry(why="deleting it again answers the same"),
    "freezeTenant": Retry(why="a tenant that is frozen stays as it is"),
    "restoreTenant": Retry(why="a tenant that is already active is refused", safe=False),
    "resumeTenant": Retry(why="with the time of the freeze a repeat never ends the next one", with_="frozen_at"),
    "rotateSigningSecret": Retry(why="a repeat would rotate twice", safe=False),
    "rotateTenantKey": Retry(why="a repeat would end the key of the answer that was lost", safe=False),
    "updateAgent": Retry(why="a repeat could undo a mode that was set in between", safe=False),
    "deleteAgent": Retry(why="its name may be in use again by then", safe=False),
    "pauseAgent": Retry(why="an agent that is paused stays as it is"),
    "resumeAgent": Retry(why="a repeat could end a pause that came in between", safe=False),
    "rotateAgentKey": Retry(why="a repeat would end the key of the answer that was lost", safe=False),
    "deleteApprovalKey": Retry(
        why="an id is used once; a deleted key stays deleted",
        done=(Done(code="APPROVAL_KEY_NOT_FOUND"), ),
    ),
    "putValue": Retry(
        why="without a condition the same value is put again; with one, the repeat could not tell its own write from another",
        without=("cas_version", "if-match", "if-none-match", ),
    ),
    "deleteValue": Retry(
        why="without a condition; absent is absent",
        without=("if-match", ),
        done=(Done(code="KEY_NOT_FOUND"), ),
    ),
    "updateNamespace": Retry(why="the same settings are set again"),
    "cancelOperation": Retry(why="one that has ended answers the same"),
    "claimItem": Retry(why="the token of the lock would be lost; it expires on its own", safe=False),
    "claimOldestItem": Retry(why="a repeat would claim another item; the first lock expires on its own", safe=False),
    "deleteItem": Retry(why="an id is used once; a deleted item stays deleted", done=(Done(code="DLQ_NOT_FOUND"), )),
    "extendItem": Retry(why="the token names one lock", with_="lock_token"),
    "failItem": Retry(
        why="the token names one lock; an archived item stays archived",
        with_="lock_token",
        done=(Done(code="INVALID_STATE", status="archived", read="getItem"), ),
    ),
    "releaseItem": Retry(
        why="the token names one lock; a released item is failed again",
        with_="lock_token",
        done=(Done(code="INVALID_STATE", status="failed", read="getItem"), ),
    ),
    "resolveItem": Retry(why="resolving a resolved item answers the same"),
    "updateSchedule": Retry(
        why="the same fields are set again; a new fire_at would start its attempts again",
        without=("fire_at", ),
    ),
    "cancelSchedule": Retry(
        why="a cancelled schedule stays cancelled",
        done=(Done(code="INVALID_STATE", status="cancelled"), ),
    ),
    "approveCheckpoint": Retry(
        why="a checkpoint that is approved stays so, and a key has one vote; an edit would void the votes after it",
        without=("effective_payload", ),
        done=(Done(code="CHECKPOINT_ALREADY_RESOLVED", status="approved", read="getCheckpoint"), Done(code="ALREADY_VOTED", decision="approved", read="getCheckpoint"), ),
    ),
    "cancelCheckpoint": Retry(
        why="a cancelled checkpoint stays cancelled",
        done=(Done(code="CHECKPOINT_ALREADY_RESOLVED", status="cancelled"), ),
    ),
    "rejectCheckpoint": Retry(
        why="a checkpoint that is rejected stays so, and a key has one vote",
        done=(Done(code="CHECKPOINT_ALREADY_RESOLVED", status="rejected", read="getCheckpoint"), Done(code="ALREADY_VOTED", decision="rejected", read="getCheckpoint"), ),
    ),
    "revokeApproval": Retry(why="an approval that was revoked stays so"),
    "deleteInbox": Retry(
        why="an id is used once; a deleted inbox stays deleted",
        done=(Done(code="INBOX_NOT_FOUND", answer={"deleted": True}), ),
    ),
    "waitForEvent": Retry(why="it changes nothing"),
    "tick": Retry(why="a second tick does nothing twice; its counts leave out what the first did"),
    "checkRateLimit": Retry(why="a repeat would count twice", safe=False),
    "resetRateLimit": Retry(why="a repeat could end a window that began in between", safe=False),
    "claimEffect": Retry(why="with a token of your own a repeat gets the same lease", with_="lease_token"),
    "extendEffect": Retry(why="the token names one lease"),
    "failEffect": Retry(why="the token names one lease; a repeat answers the same"),
    "resolveEffect": Retry(why="with the number of the lease a repeat never frees the next one", with_="fence"),
    "startEffect": Retry(why="with a token of your own a repeat gets the same lease", with_="lease_token"),
    "succeedEffect": Retry(why="the token names one lease; a repeat answers the same"),
    "setEffectPolicy": Retry(why="a repeat could undo a policy that was set in between", safe=False),
    "deleteEffectPolicy": Retry(why="a repeat could delete a policy that was set in between", safe=False),
    "updateSubscription": Retry(
        why="the same fields are set again; a resume could end a pause that came in between",
        without=("paused", ),
    ),
    "deleteSubscription": Retry(
        why="an id is used once; a deleted subscription stays deleted",
        done=(Done(code="SUBSCRIPTION_NOT_FOUND"), ),
    ),
    "replaySubscription": Retry(why="deliveries begin after the same event again"),
    "advanceClock": Retry(why="a second call would move the time a second time", safe=False),
}
