"""Every test runs on the sync and on the async client, by one table. WAYSTATION_URL: a service that takes sign-ups."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from driver import Driver, Kind, kinds

from waystation import Waystation


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["WAYSTATION_URL"]


@pytest.fixture(scope="session")
def tenant(url: str) -> dict[str, str]:
    with Waystation(url) as nobody:
        name = f"py-{uuid.uuid4().hex[:12]}"
        made = nobody.tenants.create(name=name, owner_email="owner@example.com", plan="unlimited")
        with Waystation(url, key=made["admin_key"]) as admin:
            agent = admin.agents.create(name="agent-one")
    return {
        "tenant_id": made["tenant_id"],
        "admin_key": made["admin_key"],
        "signing_secret": made["signing_secret"],
        "agent_id": agent["agent_id"],
        "api_key": agent["api_key"],
    }


@pytest.fixture(params=kinds, ids=[kind.name for kind in kinds])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def driver(kind: Kind) -> Iterator[Driver]:
    driver = Driver(kind)
    yield driver
    driver.close()


@pytest.fixture
def agent(driver: Driver, url: str, tenant: dict[str, str]) -> Any:
    return driver.client(url, key=tenant["api_key"], agent_id=tenant["agent_id"])


@pytest.fixture
def admin(driver: Driver, url: str, tenant: dict[str, str]) -> Any:
    return driver.client(url, key=tenant["admin_key"])


@pytest.fixture
def key() -> str:
    """A name that no other test has."""
    return f"k-{uuid.uuid4().hex[:12]}"
