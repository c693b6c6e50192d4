"""Runs examples/verify_bundle.py on one check a line of standard input, and prints a line for each: valid, or the reason."""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import verify_bundle  # noqa: E402

for line in sys.stdin:
    check = json.loads(line)
    try:
        bundle = json.loads(check["bundle"])
        verify_bundle.verify(bundle, check.get("checkpoint"), check.get("key"), check["after"], check.get("part", False))
        print("valid", flush=True)
    except (verify_bundle.Refused, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        print(repr(error), flush=True)
