"""Every method with more than one call, and the walk through the features, against a real service, on both clients."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from typing import Any

import httpx
import pytest
from driver import Driver

from waystation import (
    Aborted,
    EffectFailedError,
    EffectInFlightError,
    EffectRejectedError,
    EffectUnknownError,
    EffectUnrecordedError,
    ExactFloat,
    GiveUp,
    NotDone,
    RawJson,
    Signal,
    WaystationError,
    WaystationTimeoutError,
    has_code,
)


def refused(code: str) -> Any:
    return pytest.raises(WaystationError, match=f"^{code}: ")


class TestKv:
    def test_put_get_list_delete(self, agent: Any, key: str) -> None:
        put = agent.kv.put("state", key, {"rows": 42}, ttl_seconds=3600)
        assert (put["version"], put["key"]) == (1, key)
        assert agent.kv.get("state", key)["value"] == {"rows": 42}
        assert [entry["key"] for entry in agent.kv.list("state", prefix=key)] == [key]
        agent.kv.delete("state", key, if_version=1)
        assert agent.kv.find("state", key) is None
        with refused("KEY_NOT_FOUND") as raised:
            agent.kv.get("state", key)
        assert raised.value.status == 404
        assert raised.value.exit == "not_found"
        assert raised.value.request_id

    def test_null_is_a_value(self, agent: Any, key: str) -> None:
        agent.kv.put("state", key, None)
        assert agent.kv.get("state", key)["value"] is None

    def test_conditions(self, agent: Any, key: str) -> None:
        agent.kv.put("state", key, 1, cas_version=0)
        with refused("VERSION_MISMATCH") as raised:
            agent.kv.put("state", key, 2, cas_version=0)
        assert raised.value.details == {"current_version": 1}
        with refused("VERSION_MISMATCH"):
            agent.kv.get("state", key, if_version=7)
        assert agent.kv.get_if_changed("state", key, 1) is None
        assert agent.kv.get_if_changed("state", key, 2)["value"] == 1

    def test_numbers_are_exact(self, agent: Any, key: str) -> None:
        text = '{"long":123456789012345678901,"money":1.10,"huge":1e400,"third":0.3333333333333333333}'
        agent.kv.put("state", key, RawJson(text))
        value = agent.kv.get("state", key)["value"]
        assert value["long"] == 123456789012345678901
        assert isinstance(value["money"], ExactFloat)
        assert value["money"].decimal() == Decimal("1.10")
        assert agent.kv.get_text("state", key)["value"] == text
        agent.kv.update("state", key, lambda same: same)
        assert agent.kv.get_text("state", key)["value"] == text
        agent.kv.put("state", key, Decimal("0.10"))
        assert agent.kv.get_text("state", key)["value"] == "0.10"

    def test_update_counts_every_writer(self, agent: Any, key: str) -> None:
        def count() -> None:
            for _ in range(3):
                agent.kv.update("state", key, lambda runs: runs + 1, default=0, tries=50)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert agent.kv.get("state", key)["value"] == 12

    def test_update_that_returns_none_writes_nothing(self, agent: Any, driver: Driver, key: str) -> None:
        assert agent.kv.update("state", key, lambda value: None) is None
        agent.kv.put("state", key, 5)
        assert agent.kv.update("state", key, driver.handler(lambda value: None))["version"] == 1
        seen: list[Any] = []
        agent.kv.update_entry("state", key, lambda entry: seen.append(entry["version"]))
        assert seen == [1]

    def test_update_gives_up_after_its_tries(self, agent: Any, driver: Driver, key: str) -> None:
        agent.kv.put("state", key, 0)
        calls: list[int] = []

        def change(value: int) -> int:
            calls.append(value)
            agent.kv.put("state", key, value + 100)
            return value + 1

        with refused("VERSION_MISMATCH"):
            agent.kv.update("state", key, driver.handler(change), tries=2)
        assert calls == [0, 100]

    def test_namespaces_of_all_agents_with_the_admin_key(self, agent: Any, admin: Any, key: str) -> None:
        agent.kv.put("state", key, RawJson("1.50"))
        assert admin.namespaces.get_text("state", key)["value"] == "1.50"
        assert "state" in [found["namespace"] for found in admin.namespaces.list()]


class TestLists:
    def test_go_over_all_pages(self, agent: Any, key: str) -> None:
        for number in range(5):
            agent.audit.append(action=f"step.{number}", workflow_id=key, metadata={"n": number})
        found = [entry["action"] for entry in agent.audit.list(workflow_id=key, limit=2)]
        assert found == ["step.4", "step.3", "step.2", "step.1", "step.0"]
        sizes = [len(page.items) for page in agent.audit.list(workflow_id=key, limit=2).pages()]
        assert sizes == [2, 2, 1]
        page = agent.audit.list(workflow_id=key, limit=4).page()
        assert len(page.items) == 4
        rest = agent.audit.list(workflow_id=key, cursor=page.next_cursor)
        assert [entry["action"] for entry in rest] == ["step.0"]

    def test_by_number(self, agent: Any, key: str) -> None:
        for number in range(3):
            agent.rate_limit.check(f"{key}-{number}", limit=5, window_seconds=600)
        names = [counter["key"] for counter in agent.rate_limit.list(limit=2)]
        assert {f"{key}-{number}" for number in range(3)} <= set(names)


class TestRateLimit:
    def test_blocked_is_a_result(self, agent: Any, key: str) -> None:
        assert agent.rate_limit.check(key, limit=1, window_seconds=60)["allowed"] is True
        blocked = agent.rate_limit.check(key, limit=1, window_seconds=60)
        assert blocked["allowed"] is False
        assert 0 < blocked["retryAfter"] <= 60
        assert agent.rate_limit.status(key)["count"] >= 1
        assert agent.rate_limit.reset(key) == {"key": key, "reset": True}

    def test_wait_ends_when_it_would_be_longer_than_allowed(self, agent: Any, key: str) -> None:
        agent.rate_limit.check(key, limit=1, window_seconds=60)
        with pytest.raises(WaystationTimeoutError, match=r"^Still blocked for \d+ s, and only 0\.1 s are left to wait\.$"):
            agent.rate_limit.wait(key, limit=1, window_seconds=60, max_wait_ms=100)

    def test_wait_returns_when_there_is_room(self, agent: Any, key: str) -> None:
        agent.rate_limit.check(key, limit=1, window_seconds=1)
        assert agent.rate_limit.wait(key, limit=1, window_seconds=1, max_wait_ms=60_000)["allowed"]


class TestCheckpoints:
    def test_ask_waits_for_the_decision(self, agent: Any, admin: Any, driver: Driver, key: str) -> None:
        asked: list[Any] = []
        thread = threading.Thread(
            target=lambda: asked.append(agent.checkpoints.ask(title=f"Pay {key}?", idempotency_key=key))
        )
        thread.start()
        pending: list[Any] = []
        while not pending:
            pending = [one for one in admin.checkpoints.list(status="pending") if one["title"] == f"Pay {key}?"]
        admin.checkpoints.approve(pending[0]["id"], reason="expected")
        thread.join(60)
        assert (asked[0]["status"], asked[0]["reason"]) == ("approved", "expected")

    def test_a_signal_ends_the_wait(self, agent: Any) -> None:
        id = agent.checkpoints.create(title="Wait?", callback_url=None)["id"]
        signal = Signal()
        threading.Timer(0.2, signal.abort).start()
        began = time.monotonic()
        with pytest.raises(Aborted):
            agent.checkpoints.wait_for(id, signal=signal)
        assert time.monotonic() - began < 40
        agent.checkpoints.cancel(id)
        assert agent.checkpoints.wait_for(id)["status"] == "cancelled"

    def test_a_signal_that_is_aborted_sends_nothing(self, agent: Any) -> None:
        signal = Signal()
        signal.abort(ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            agent.kv.get("state", "x", signal=signal)


class TestDeadLetters:
    def drain(self, agent: Any) -> None:
        while item := agent.dlq.claim_oldest():
            agent.dlq.resolve(item["id"], lock_token=item["lock_token"])

    def test_work_resolves_releases_and_archives(self, agent: Any, driver: Driver) -> None:
        self.drain(agent)
        made = {what: agent.dlq.create(payload={"do": what}, error="x")["id"] for what in ("done", "again", "never")}
        errors: list[Any] = []
        handled: list[str] = []

        def handle(item: Any, context: Any) -> None:
            what = item["payload"]["do"]
            handled.append(what)
            if what == "never":
                raise GiveUp("not ours")
            if what == "again" and item["claims"] < 2:
                raise RuntimeError("the bank is away")

        summary = agent.dlq.work(
            driver.handler(handle),
            stop_when_empty=True,
            idle_ms_max=10,
            on_error=lambda error, item: errors.append((type(error).__name__, item["id"])),
        )
        assert (summary.resolved, summary.released, summary.failed, summary.lost) == (2, 1, 1, 0)
        assert handled.count("again") == 2
        assert set(errors) == {("RuntimeError", made["again"]), ("GiveUp", made["never"])}
        statuses = {what: agent.dlq.get(id)["status"] for what, id in made.items()}
        assert statuses == {"done": "resolved", "again": "resolved", "never": "archived"}

    def test_work_of_several_ends_with_its_signal(self, agent: Any, driver: Driver) -> None:
        self.drain(agent)
        for number in range(6):
            agent.dlq.create(payload=number, error="x")
        signal = Signal()
        handled: list[int] = []

        def handle(item: Any, context: Any) -> None:
            handled.append(item["payload"])
            if len(handled) >= 6:
                signal.abort()

        summary = agent.dlq.work(driver.handler(handle), concurrency=3, signal=signal, idle_ms_max=10)
        assert sorted(handled) == [0, 1, 2, 3, 4, 5]
        assert summary.resolved + summary.released == 6

    def test_work_keeps_a_short_lock(self, agent: Any, driver: Driver) -> None:
        self.drain(agent)
        id = agent.dlq.create(payload=1, error="x")["id"]

        def handle(item: Any, context: Any) -> None:
            time.sleep(2.5)
            assert not context.signal.aborted

        summary = agent.dlq.work(driver.handler(handle), lock_seconds=2, stop_when_empty=True)
        assert (summary.resolved, summary.lost) == (1, 0)
        assert agent.dlq.get(id)["claims"] == 1

    def test_work_aborts_the_signal_of_a_handler_whose_lock_is_lost(
        self, agent: Any, driver: Driver
    ) -> None:
        self.drain(agent)
        agent.dlq.create(payload=1, error="x")
        seen: list[Any] = []

        def handle(item: Any, context: Any) -> None:
            agent.dlq.resolve(item["id"])
            context.signal.wait(60)
            seen.append(context.signal.reason)

        summary = agent.dlq.work(driver.handler(handle), lock_seconds=1, stop_when_empty=True)
        assert summary.lost == 1
        assert has_code(seen[0], "INVALID_STATE")

    def test_work_ends_with_a_key_that_is_refused(self, driver: Driver, url: str) -> None:
        stranger = driver.client(url, key="svc_agt_" + "x" * 40)
        with refused("UNAUTHORIZED"):
            stranger.dlq.work(lambda item, context: None)

    def test_many(self, admin: Any, agent: Any, key: str) -> None:
        agent.dlq.create(payload=1, error="x", workflow_id=key)
        assert admin.dlq.discard_many(filter={"workflow_id": key}, dry_run=True)["matched"] == 1
        operation = admin.dlq.discard_many(filter={"workflow_id": key})
        looks: list[str] = []
        ended = admin.dlq.wait_for_operation(operation["id"], on_progress=lambda one: looks.append(one["status"]))
        assert (ended["status"], ended["done"], looks[-1]) == ("succeeded", 1, "succeeded")


class TestEffects:
    def test_once(self, agent: Any, driver: Driver, key: str) -> None:
        calls: list[Any] = []

        def work(permit: Any) -> Any:
            calls.append(permit)
            return {"receipt": permit.payload["order"]}

        given = {"type": "refund", "key": key, "payload": {"order": 7}}
        assert agent.effects.once(driver.handler(work), **given) == {"receipt": 7}
        assert agent.effects.once(driver.handler(work), **given) == {"receipt": 7}
        (permit,) = calls
        assert (permit.fence, permit.effect["status"], len(permit.payload_hash)) == (1, "running", 64)

    def test_work_that_raises_leaves_it_unknown(self, agent: Any, admin: Any, driver: Driver, key: str) -> None:
        given = {"type": "refund", "key": key, "payload": 1, "on_unknown": "hold"}

        def work(permit: Any) -> None:
            raise ConnectionError("the bank hung up")

        with pytest.raises(ConnectionError):
            agent.effects.once(driver.handler(work), **given)
        (effect,) = admin.effects.list(type="refund", key=key)
        assert agent.effects.wait_for(effect["id"])["status"] == "unknown"
        with pytest.raises(EffectUnknownError) as raised:
            agent.effects.once(driver.handler(work), **given)
        assert (raised.value.effect_id, raised.value.checkpoint_id) == (effect["id"], None)
        threading.Timer(
            0.3, lambda: admin.effects.resolve(effect["id"], outcome="succeeded", result={"told": True})
        ).start()
        assert agent.effects.once(driver.handler(work), if_unknown="wait", **given) == {"told": True}

    def test_not_done(self, agent: Any, driver: Driver, key: str) -> None:
        given = {"type": "refund", "key": key, "payload": 1}
        tried: list[int] = []

        def work(permit: Any) -> str:
            tried.append(permit.fence)
            if permit.fence == 1:
                raise NotDone("the bank is busy", retry=True)
            raise NotDone("card declined")

        with pytest.raises(NotDone, match="busy"):
            agent.effects.once(driver.handler(work), **given)
        with pytest.raises(NotDone, match="declined"):
            agent.effects.once(driver.handler(work), **given)
        with pytest.raises(EffectFailedError) as raised:
            agent.effects.once(driver.handler(work), **given)
        assert (raised.value.reason, tried) == ("card declined", [1, 2])

    def test_on_raise_says_what_an_error_means(self, agent: Any, driver: Driver, key: str) -> None:
        def work(permit: Any) -> None:
            raise KeyError("no such card")

        given = {"type": "refund", "key": key, "payload": 1}
        with pytest.raises(KeyError):
            agent.effects.once(driver.handler(work), on_raise=lambda error: "failed", **given)
        with pytest.raises(EffectFailedError):
            agent.effects.once(driver.handler(work), **given)

    @pytest.mark.parametrize("verb", ["approve", "reject"])
    def test_waits_for_its_approval(self, agent: Any, admin: Any, driver: Driver, key: str, verb: str) -> None:
        def decide(checkpoint: Any) -> None:
            given = {"effective_payload": {"amount": 20}} if verb == "approve" else {}
            getattr(admin.checkpoints, verb)(checkpoint["id"], **given)

        def once() -> Any:
            return agent.effects.once(
                driver.handler(lambda permit: permit.payload),
                type="refund",
                key=key,
                payload={"amount": 30},
                approval={"title": "Refund?", "editable": True},
                on_waiting=driver.handler(decide),
            )

        if verb == "approve":
            assert once() == {"amount": 20}
        else:
            with pytest.raises(EffectRejectedError) as raised:
                once()
            assert raised.value.status == "rejected"
            assert raised.value.checkpoint_id

    def test_in_flight(self, agent: Any, driver: Driver, key: str) -> None:
        given = {"type": "refund", "key": key, "payload": 1}
        results: list[Any] = []

        def work(permit: Any) -> str:
            with pytest.raises(EffectInFlightError) as raised:
                agent.effects.once(lambda permit: "never", if_in_flight="raise", **given)
            assert raised.value.agent_id == "agent-one"
            waiting = threading.Thread(
                target=lambda: results.append(agent.effects.once(lambda permit: "never", **given))
            )
            waiting.start()
            threads.append(waiting)
            return "done"

        threads: list[threading.Thread] = []
        assert agent.effects.once(driver.handler(work), **given) == "done"
        threads[0].join(60)
        assert results == ["done"]

    def test_a_result_that_is_not_json_is_recorded_without_it(self, agent: Any, driver: Driver, key: str) -> None:
        given = {"type": "refund", "key": key, "payload": 1}
        with pytest.raises(EffectUnrecordedError) as raised:
            agent.effects.once(driver.handler(lambda permit: {1, 2}), **given)
        assert raised.value.has_succeeded
        assert raised.value.result == {1, 2}
        assert isinstance(raised.value.__cause__, TypeError)
        assert agent.effects.once(driver.handler(lambda permit: "never"), **given) is None

    def test_a_lost_answer_of_a_claim_does_it_once(
        self, driver: Driver, url: str, tenant: dict[str, str], key: str
    ) -> None:
        agent = driver.lossy(url, key=tenant["api_key"])
        driver.network.next = ["lose_answer"]
        result = agent.effects.once(driver.handler(lambda permit: permit.fence), type="refund", key=key, payload=1)
        assert result == 1


class TestEvents:
    def test_list_follow_and_wait(self, agent: Any, key: str) -> None:
        start = agent.events.position()
        wait = agent.wait(any=[{"workflow_id": key}])
        assert wait.begun() >= start
        for number in range(3):
            agent.audit.append(action=f"step.{number}", workflow_id=key)
        first = wait.first()
        assert (first["type"], first["workflow_id"]) == ("audit.appended", key)
        listed = [event["seq"] for event in agent.events.list(workflow_id=key, limit=2)]
        assert len(listed) == 3
        followed: list[int] = []
        for event in agent.events.follow(workflow_id=key, after=start, wait_seconds=5):
            followed.append(event["seq"])
            if len(followed) == 3:
                break
        over: list[int] = []
        for event in agent.wait(any=[{"workflow_id": key}], after=start, wait_seconds=5):
            over.append(event["seq"])
            if len(over) == 3:
                break
        assert followed == over == listed
        page = agent.events.list(workflow_id=key, after=listed[0], limit=1).page()
        assert [event["seq"] for event in page.items] == [listed[1]]

    def test_a_signal_ends_a_wait(self, agent: Any) -> None:
        with pytest.raises(Aborted):
            agent.wait(any=[{"subject": "nothing"}], signal=Signal.timeout(300)).first()


class TestInboxes:
    def test_messages_come_oldest_first_and_follow_waits(self, agent: Any) -> None:
        inbox = agent.inboxes.create(label="from the bank")
        for number in range(3):
            httpx.post(inbox["url"], json={"n": number}, trust_env=False)
        assert [message["body"]["n"] for message in agent.inboxes.messages(inbox["id"], limit=2)] == [0, 1, 2]
        page = agent.inboxes.messages(inbox["id"], limit=1).page()
        seen: list[int] = []
        timer = threading.Timer(0.3, lambda: httpx.post(inbox["url"], json={"n": 3}, trust_env=False))
        timer.start()
        for message in agent.inboxes.messages(inbox["id"], after=page.next_cursor, follow=True):
            seen.append(message["body"]["n"])
            if len(seen) == 3:
                break
        assert seen == [1, 2, 3]
        detail = agent.inboxes.get(inbox["id"])
        assert (detail["inbox"]["label"], len(detail["messages"])) == ("from the bank", 4)
        assert agent.inboxes.delete(inbox["id"]) == {"deleted": True}

    def test_follow_ends_with_its_signal(self, agent: Any) -> None:
        inbox = agent.inboxes.create()
        with pytest.raises(Aborted):
            list(agent.inboxes.messages(inbox["id"], follow=True, signal=Signal.timeout(300)))


class TestTheRest:
    def test_schedules(self, agent: Any, key: str) -> None:
        made = agent.schedules.create(
            callback_url="http://127.0.0.1:9/x",
            callback_payload={"n": 1},
            fire_at="2099-01-01T09:00:00Z",
            idempotency_key=key,
        )
        again = agent.schedules.create(
            callback_url="http://127.0.0.1:9/x",
            callback_payload={"n": 1},
            fire_at="2099-01-01T09:00:00Z",
            idempotency_key=key,
        )
        assert again["id"] == made["id"]
        assert agent.schedules.update(made["id"], callback_payload=None)["callback_payload"] is None
        assert agent.schedules.update(made["id"], name="later")["callback_payload"] is None
        agent.schedules.cancel(made["id"])
        assert agent.schedules.get(made["id"])["status"] == "cancelled"

    def test_workflows(self, agent: Any, key: str) -> None:
        agent.in_workflow(key).audit.append(action="begun")
        assert agent.workflows.get(key)["events"] == 1
        odd = f"{key}-\u00e4\u6f22"
        agent.in_workflow(odd).audit.append(action="begun")
        assert agent.workflows.get(odd)["workflow_id"] == odd

    def test_admin(self, admin: Any, key: str) -> None:
        agent = admin.agents.create(name=key)
        assert admin.agents.update(key, mode="read")["mode"] == "read"
        rotated = admin.agents.rotate_key(key, grace_seconds=60)
        assert rotated["api_key"] != agent["api_key"]
        approval_key = admin.approval_keys.create(label="boss")
        assert approval_key["approval_url"] is None
        assert admin.approval_keys.delete(approval_key["approval_key_id"]) is None
        assert admin.agents.delete(key) is None
        assert admin.tenants.get("me")["plan"] == "unlimited"
        assert admin.health.live() == {"status": "alive"}
        assert admin.health.ready(verbose=True)["engine"] in ("sqlite", "postgres")
        assert admin.openapi()["openapi"].startswith("3.1")
        assert admin.seal.get()["size"] >= 1
        subscription = admin.subscriptions.create(types=["kv.*"], url="http://127.0.0.1:9/x", paused=True)
        assert admin.subscriptions.update(subscription["id"], workflow_id=None)["workflow_id"] is None
        assert admin.subscriptions.delete(subscription["id"]) is None
        assert admin.effect_policies.set(key, approval="optional")["type"] == key
        assert admin.effect_policies.delete(key) is None

    def test_names_with_any_characters(self, agent: Any, key: str) -> None:
        for name in (f"{key}/a b", f"{key}?x=1#y", f"{key}%2F", f"{key}\u00e4\u6f22\U0001f600", f"..{key}", "%2e%2E"):
            agent.kv.put("state", name, name)
            assert agent.kv.get("state", name)["value"] == name
