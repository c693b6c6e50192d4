"""Hooks of Schemathesis."""

import schemathesis

# Of POST /v1/wait.
wait_seconds_max = 55


@schemathesis.hook
def before_call(context, case, kwargs):
    """A request that waits for what nobody does would take a minute: it asks for no wait, unless it asks for a wrong one."""
    if case.operation.label != "POST /v1/wait" or not isinstance(case.body, dict):
        return
    seconds = case.body.get("wait_seconds", 0)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if is_number and 0 <= seconds <= wait_seconds_max and seconds == int(seconds):
        case.body["wait_seconds"] = 0
