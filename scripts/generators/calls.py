"""Five calls with a client that openapi-python-client made: client/ lies beside this file."""

import sys
from datetime import datetime, timedelta, timezone

from client import AuthenticatedClient
from client.api.audit_log import append_entry, list_entries
from client.api.checkpoints import approve_checkpoint, create_checkpoint
from client.api.key_value_store import get_value, put_value
from client.api.schedules import create_schedule
from client.models import (
    AppendEntryRequest,
    AuditEntry,
    Checkpoint,
    CheckpointRequest,
    DecisionRequest,
    Entry,
    Page,
    PutValueRequest,
    Schedule,
    ScheduleRequest,
)

url, agent_key, admin_key = sys.argv[1:]
agent = AuthenticatedClient(base_url=url, token=agent_key)
admin = AuthenticatedClient(base_url=url, token=admin_key)

put = put_value.sync("state", "last-run", client=agent, body=PutValueRequest(value={"rows": 42}))
assert isinstance(put, Entry) and put.version == 1, put
got = get_value.sync("state", "last-run", client=agent)
assert isinstance(got, Entry) and got.value == {"rows": 42}, got

fire_at = datetime.now(timezone.utc) + timedelta(days=1)
schedule = create_schedule.sync(
    client=agent,
    body=ScheduleRequest(callback_url="https://example.com/wake", callback_payload={"job": 7}, fire_at=fire_at),
)
assert isinstance(schedule, Schedule) and schedule.status == "pending", schedule

checkpoint = create_checkpoint.sync(client=agent, body=CheckpointRequest(title="Refund 30 EUR?", callback_url=None))
assert isinstance(checkpoint, Checkpoint) and checkpoint.status == "pending", checkpoint
decided = approve_checkpoint.sync(checkpoint.id, client=admin, body=DecisionRequest(reason="fine"))
assert isinstance(decided, Checkpoint) and decided.status == "approved", decided

entry = append_entry.sync(client=agent, body=AppendEntryRequest(action="import.started"))
assert isinstance(entry, AuditEntry), entry
page = list_entries.sync(client=agent)
assert isinstance(page, Page), page
assert [item.action for item in page.items if isinstance(item, AuditEntry)] == ["import.started"], page
print("five calls: as expected")
