"""An author's test of days that pass, against a service with a test clock. WAYSTATION_CLOCK_URL: its address."""

from __future__ import annotations

import os
import threading
import uuid
from typing import Any

import pytest
from driver import Driver

from waystation import Waystation


@pytest.fixture
def keys() -> tuple[str, str]:
    url = os.environ["WAYSTATION_CLOCK_URL"]
    with Waystation(url) as nobody:
        made = nobody.tenants.create(name=f"py-{uuid.uuid4().hex[:12]}", owner_email="owner@example.com")
    with Waystation(url, key=made["admin_key"]) as admin:
        return made["admin_key"], admin.agents.create(name="agent-one")["api_key"]


def test_nobody_answers_for_three_days(driver: Driver, keys: tuple[str, str]) -> None:
    url = os.environ["WAYSTATION_CLOCK_URL"]
    admin, agent = (driver.client(url, key=key) for key in keys)
    asked: list[Any] = []
    waiting = threading.Thread(
        target=lambda: asked.append(agent.checkpoints.ask(title="Pay?", timeout_seconds=3 * 86_400))
    )
    start = admin.events.position()
    waiting.start()
    for _ in admin.events.follow(type="checkpoint.created", after=start):
        break
    before = admin.clock.get()["offset_seconds"]
    advanced = admin.clock.advance(3 * 86_400)
    waiting.join(60)
    assert asked[0]["status"] in ("expired", "rejected")
    assert (advanced["done"], advanced["advanced_seconds"]) == (True, 3 * 86_400)
    assert f"checkpoint.{asked[0]['status']}" in advanced["counts"]
    # It stands still while what is due is done.
    assert 0 <= 3 * 86_400 - (admin.clock.get()["offset_seconds"] - before) < 60
