"""An agent's working day with the Python client: every feature once.

    python examples/agent.py [address]      address: where the service is, default http://127.0.0.1:8420

Needs the package waystation (pip install ./sdk-python) and a service on the same machine whose clock runs by itself
(TICK=internal). A stand-in decides in place of the human. Keys are not printed. Takes a few seconds.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx

from waystation import (
    AsyncWaystation,
    GiveUp,
    NotDone,
    Permit,
    RawJson,
    Signal,
    VerifiedCallback,
    Waystation,
    WaystationError,
    WorkContext,
    has_code,
    verify_callback,
)
from waystation.types import ClaimedDeadLetter, EffectApproval

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8420"
workflow_id = "invoices"


def say(what: str) -> None:
    print(f"- {what}")


def main() -> None:
    name = f"agent-{uuid.uuid4().hex[:12]}"
    with Waystation(url) as nobody:
        tenant = nobody.tenants.create(name=name, owner_email="owner@example.com")
    with Waystation(url, key=tenant["admin_key"]) as admin:
        created = admin.agents.create(name="payer")
        with Waystation(url, key=created["api_key"], workflow_id=workflow_id) as agent:
            say("a tenant with one agent")
            remember(agent)
            keep_to_the_limit(agent)
            ask(agent, admin)
            pay_once(agent, admin)
            mend(agent)
            be_called_back(agent, tenant["signing_secret"])
            read_the_inbox(agent)
            look_back(agent, admin)
        asyncio.run(wait_for_an_event(created["api_key"]))
        admin.tenants.delete(tenant["tenant_id"], confirm="DELETE ALL DATA")
        say("done; the tenant is scheduled for deletion")


def remember(agent: Waystation) -> None:
    """State: compare-and-set, exact numbers."""

    def with_one_more(names: list[str]) -> list[str]:
        return [*names, f"inv-{len(names) + 1}"]

    for _ in range(2):
        agent.kv.update("payer", "open", with_one_more, default=[])
    agent.kv.put("payer", "balance", RawJson("123456789012345678901.10"), ttl_seconds=3600)
    say(f"open: {', '.join(agent.kv.get('payer', 'open')['value'])}")
    say(f"the balance is {agent.kv.get_text('payer', 'balance')['value']}")
    try:
        agent.kv.put("payer", "open", [], cas_version=1)
    except WaystationError as error:
        if not has_code(error, "VERSION_MISMATCH"):
            raise
        say("a put over an old version is refused")


def keep_to_the_limit(agent: Waystation) -> None:
    agent.rate_limit.wait("bank", limit=2, window_seconds=60, max_wait_ms=120_000)
    agent.rate_limit.check("bank", limit=2, window_seconds=60)
    blocked = agent.rate_limit.check("bank", limit=2, window_seconds=60)
    say(f"the third call to the bank is {'allowed' if blocked['allowed'] else 'blocked'}")


def ask(agent: Waystation, admin: Waystation) -> None:
    """A person decides. The stand-in approves as soon as there is a question."""

    def decide() -> None:
        for event in admin.events.follow(type="checkpoint.created", after=0):
            admin.checkpoints.approve(event["subject"]["id"], reason="expected")
            return

    person = threading.Thread(target=decide)
    person.start()
    answer = agent.checkpoints.ask(title="Pay 900 for inv-2?", signal=Signal.timeout(60_000))
    person.join()
    say(f"inv-2 was {answer['status']}: {answer['reason']}")


def pay_once(agent: Waystation, admin: Waystation) -> None:
    """An effect happens at most once, with the payload that the person has approved."""
    paid: list[int] = []

    def decide(checkpoint: EffectApproval) -> None:
        admin.checkpoints.approve(checkpoint["id"], effective_payload={"amount": 600})

    def pay(permit: Permit) -> dict[str, int]:
        paid.append(permit.payload["amount"])
        if permit.fence == 1:
            raise NotDone("the bank is busy", retry=True)
        return {"paid": permit.payload["amount"]}

    def once() -> dict[str, int]:
        return agent.effects.once(
            pay,
            type="payment",
            key="inv-2",
            payload={"amount": 900},
            approval={"title": "Pay inv-2?", "editable": True},
            on_waiting=decide,
        )

    try:
        once()
    except NotDone as error:
        say(f"not paid: {error}")
    receipts = [once(), once()]
    say(f"paid {receipts[0]['paid']} once, asked twice: {receipts[0] == receipts[1]}, tries: {len(paid)}")


def mend(agent: Waystation) -> None:
    """Dead letters: what failed is kept, and a worker finishes it."""
    agent.dlq.create(payload={"invoice": "inv-3"}, error="the bank is away")
    agent.dlq.create(payload={"invoice": "inv-9"}, error="unknown")

    def handle(item: ClaimedDeadLetter, context: WorkContext) -> None:
        if item["payload"]["invoice"] != "inv-3":
            raise GiveUp("not one of ours")
        context.signal.raise_if_aborted()
        agent.audit.append(action="inv-3.paid", metadata={"by": "worker"}, idempotency_key="inv-3-paid")

    summary = agent.dlq.work(handle, stop_when_empty=True, idle_ms_max=10)
    say(f"the worker resolved {summary.resolved} and archived {summary.failed}")


def be_called_back(agent: Waystation, signing_secret: str) -> None:
    """A schedule calls a URL of ours, and is verified."""
    called: list[VerifiedCallback] = []
    arrived = threading.Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            called.append(verify_callback(self.headers, body, signing_secret))
            self.send_response(204)
            self.end_headers()
            arrived.set()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/reminders"
    now = datetime.now(timezone.utc)
    agent.schedules.create(callback_url=address, callback_payload={"remember": "inv-4"}, fire_at=now)
    if not arrived.wait(60):
        raise TimeoutError("nobody called back")
    server.shutdown()
    say(f"called back: {called[0].event}, attempt {called[0].attempt}, verified")


def read_the_inbox(agent: Waystation) -> None:
    inbox = agent.inboxes.create(label="from the bank")
    for number in (1, 2):
        httpx.post(inbox["url"], json={"statement": number}, trust_env=False)
    found: list[int] = []
    for message in agent.inboxes.messages(inbox["id"], follow=True, signal=Signal.timeout(60_000)):
        found.append(message["body"]["statement"])
        if len(found) == 2:
            break
    say(f"the inbox has statements {found}")


def look_back(agent: Waystation, admin: Waystation) -> None:
    agent.audit.append(action="day.ended")
    actions = [entry["action"] for entry in agent.audit.list(workflow_id=workflow_id)]
    say(f"the audit log says: {', '.join(reversed(actions))}")
    say(f"the workflow {agent.workflows.get(workflow_id)['workflow_id']} has everything of it")
    seal = admin.seal.get()
    say(f"the journal is sealed by {seal['origin'].split('/')[0]}: {seal['size'] > 10}")


async def wait_for_an_event(key: str) -> None:
    """The async client has the same methods."""
    async with AsyncWaystation(url, key=key) as agent:
        wait = agent.wait(any=[{"type": "audit.appended"}])
        await wait.begun()
        await agent.audit.append(action="night.began")
        event = await asyncio.wait_for(wait.first(), 60)
        say(f"the async client saw {event['type']}")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"agent: {error}")
