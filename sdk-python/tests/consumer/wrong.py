"""Wrong uses: a type checker finds each line that ends in `# wrong`, and no other."""

from __future__ import annotations

from waystation import AsyncWaystation, Permit, Waystation
from waystation.types import AuditEntry

client = Waystation("http://x")


def wrong() -> None:
    Waystation(url=1)  # wrong
    Waystation()  # wrong
    client.kv.put("state", "run")  # wrong
    client.kv.put("state", "run", 1, ttl_secs=5)  # wrong
    client.kv.put("state", 1, 1)  # wrong
    client.kv.get("state", "run")["valeu"]  # wrong
    version: str = client.kv.get("state", "run")["version"]  # wrong
    client.audit.append(metadata={})  # wrong
    client.audit.append("x")  # wrong
    client.audit.append(action="x", idempotency="mine")  # wrong
    client.kv.get("state", "run", idempotency_key="mine")  # wrong
    client.agents.update("payer", mode="write")  # wrong
    client.agents.update("payer")  # wrong
    client.dlq.create(payload=1)  # wrong
    client.schedules.create(callback_url="http://x", callback_payload=1, fire_at=5)  # wrong
    client.rate_limit.check("bank", limit=10)  # wrong
    client.rate_limit.check("bank", limit=10, window_seconds=60, algorithm="leaky")  # wrong
    client.wait(any=[{"kind": "x"}])  # wrong
    client.wait(any=[{"type": "nothing.happened"}])  # wrong
    client.dlq.redrive_many(filter={"status": "resolved"})  # wrong
    client.dlq.redrive_many(filter={}, dry_run=True)["status"]  # wrong
    client.dlq.work(lambda item: None)  # wrong
    client.nothing.get("x")  # wrong
    text: int = client.effects.once(lambda permit: "x", type="refund", key="1", payload=1)  # wrong
    client.effects.once(lambda permit: "x", type="refund", key="1")  # wrong
    entries: list[AuditEntry] = client.audit.list()  # wrong
    for message in client.inboxes.messages("inb_1", follow=True):
        length: int = message["headers"]["content-length"]  # wrong
        name: str = message["query"]["name"]  # wrong
        print(length, name)
    print(version, text, entries)


def takes_two(one: Permit, other: int) -> None:
    print(one, other)


async def wrong_async(agent: AsyncWaystation) -> None:
    put: dict[str, object] = agent.kv.put("a", "b", 1)  # wrong
    for entry in agent.audit.list():  # wrong
        pass
    print(put)
    await agent.effects.once(takes_two, type="refund", key="1", payload=1)  # wrong
    (await agent.audit.list().page()).next  # wrong
