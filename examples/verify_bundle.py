#!/usr/bin/env python3
"""Checks a bundle of the seal offline: python3 verify_bundle.py bundle.json [--checkpoint kept.txt] [--public-key KEY]

Needs Python 3.10 or newer and nothing else. It shares no code with the service or with `waystation verify`. A bundle is
the answer of GET /v1/seal/bundle; the checkpoint is a note that you kept earlier, or JSON with one in its member "note".
docs/seal.md has the formats, and says what this proves and what it does not.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys

FORMAT = "waystation-seal-bundle/1"


class Refused(Exception):
    """The first thing that is wrong."""


def require(holds, reason):
    if not holds:
        raise Refused(reason)


# Ed25519 (RFC 8032, section 5.1), in extended coordinates. Slow, and for public data only.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def added(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, point):
    result = NEUTRAL
    while number > 0:
        if number & 1:
            result = added(result, point)
        point = added(point, point)
        number >>= 1
    return result


def is_same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def point_of(encoded):
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * SQRT_OF_MINUS_1 % P
    if (x * x - square) % P != 0 or (x == 0 and sign == 1):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(public_key, message, signature):
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a, r = point_of(public_key), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    k = int.from_bytes(digest, "little") % ORDER
    return is_same(times(s, BASE), added(r, times(k, a)))


# The Merkle tree of RFC 6962, section 2.1, by its recursive definitions.


def leaf_hash(leaf):
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(size):
    """The largest power of two that is less than the size."""
    return 1 << (size - 1).bit_length() - 1


def root_with(index, size, leaf, proof):
    """The root of a tree of this size with this leaf, from an inclusion proof."""
    if size == 1:
        require(not proof, "a proof is too long")
        return leaf
    require(proof, "a proof is too short")
    middle = split(size)
    if index < middle:
        return node_hash(root_with(index, middle, leaf, proof[:-1]), proof[-1])
    return node_hash(proof[-1], root_with(index - middle, size - middle, leaf, proof[:-1]))


def roots_by(old_size, size, old_root, proof, is_left_edge=True):
    """The older and the newer root, from a consistency proof."""
    if old_size == size:
        if is_left_edge:
            require(not proof, "a proof is too long")
            return old_root, old_root
        require(len(proof) == 1, "a proof has a wrong length")
        return proof[0], proof[0]
    require(proof, "a proof is too short")
    middle = split(size)
    if old_size <= middle:
        old, new = roots_by(old_size, middle, old_root, proof[:-1], is_left_edge)
        return old, node_hash(new, proof[-1])
    old, new = roots_by(old_size - middle, size - middle, old_root, proof[:-1], False)
    return node_hash(proof[-1], old), node_hash(proof[-1], new)


def is_grown(old_size, old_root, size, root, proof):
    if old_size == 0:
        return not proof and old_root == hashlib.sha256().digest()
    return roots_by(old_size, size, old_root, proof) == (old_root, root)


class Tree:
    """A tree that grows by one leaf after the other; of what came before it knows the roots of the complete parts."""

    def __init__(self, size, edge):
        self.size, self.parts = size, []
        heights = [height for height in reversed(range(size.bit_length())) if size >> height & 1]
        require(len(heights) == len(edge), f"the edge is not that of {size} events")
        self.parts = list(zip(heights, edge))

    def append(self, leaf):
        height = 0
        while self.parts and self.parts[-1][0] == height:
            leaf = node_hash(self.parts.pop()[1], leaf)
            height += 1
        self.parts.append((height, leaf))
        self.size += 1

    def root(self):
        if not self.parts:
            return hashlib.sha256().digest()
        root = self.parts[-1][1]
        for _, left in reversed(self.parts[:-1]):
            root = node_hash(left, root)
        return root


# Signed notes (c2sp.org/signed-note) and checkpoints (c2sp.org/tlog-checkpoint).


def decoded(text, length):
    try:
        result = base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise Refused(f"{text} is not base64")
    require(len(result) == length, f"{text} has a wrong length")
    return result


def hash_in(text):
    return decoded(text, 32)


def parts_of_key(vkey):
    parts = vkey.split("+", 2)
    require(len(parts) == 3, f"{vkey} is not a key of the form name+hash+key")
    name, key = parts[0], decoded(parts[2], 33)
    key_id = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    require(key[0] == 1 and key_id.hex() == parts[1], f"{vkey} is not a key of the form name+hash+key")
    return name, key_id, key[1:]


class Checkpoint:
    def __init__(self, what, note, vkeys):
        text, blank, signatures = note.rpartition("\n\n")
        require(blank, f"{what} is not a signed note")
        text += "\n"
        self.key = next((vkey for vkey in vkeys if signed_by(text, signatures, vkey)), None)
        require(self.key is not None, f"{what} is not signed by a known key")
        self.origin, size, root, *lines = text[:-1].split("\n") + [""] * 2
        require(self.key.split("+")[0] == self.origin, f"{what} is signed by the key of another journal")
        require(re.fullmatch("0|[1-9][0-9]{0,14}", size), f"{what} has no size")
        self.size, self.root, self.workflows = int(size), hash_in(root), {}
        self.before = {}
        for line in lines:
            if found := re.fullmatch('workflow (".*") (0|[1-9][0-9]*)', line):
                self.workflows[json.loads(found[1])] = int(found[2])
            if found := re.fullmatch('workflow-before (".*") (0|[1-9][0-9]*) ([1-9][0-9]*)', line):
                self.before[json.loads(found[1])] = (int(found[3]), int(found[2]))


def signed_by(text, signatures, vkey):
    name, key_id, public_key = parts_of_key(vkey)
    for line in signatures.split("\n"):
        if line.startswith(f"— {name} "):
            signature = decoded(line[len(f"— {name} ") :], 68)
            if signature[:4] == key_id and is_signed(public_key, text.encode(), signature[4:]):
                return True
    return False


# Bundles.


def canonical(value):
    """JSON by RFC 8785. Events hold no lists, fractions or large numbers."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        require(abs(value) < 2**53, f"an event holds {value}")
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    require(isinstance(value, dict), "an event holds a list or a fraction")
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"


def leaf_of(event):
    return leaf_hash(canonical(event).encode())


def is_whole(value):
    return type(value) is int and value >= 0


def verify(bundle, kept_text=None, key=None, after=0, part=False):
    """Returns lines that say what holds. Raises Refused, or another exception for what is not a bundle at all."""
    require(isinstance(bundle, dict) and bundle.get("format") == FORMAT, f"this is not a bundle in the format {FORMAT}")
    keys = bundle["keys"] if key is None else [key]
    latest = Checkpoint("the checkpoint of the bundle", bundle["note"], keys)
    require_same(bundle, latest)
    kept = None
    if kept_text is not None:
        note = json.loads(kept_text)["note"] if kept_text.lstrip().startswith("{") else kept_text
        kept = Checkpoint("the checkpoint that was kept", note, keys + bundle["keys"])
        require(kept.origin == latest.origin, "the checkpoint that was kept belongs to another journal")
    begins = bundle["after"]
    require(is_whole(begins), "a whole number is missing")
    require(begins <= after, f"the events up to {begins} are missing: the bundle begins after them")
    if kept and latest.size < kept.size:
        require_part(bundle, latest, kept, part)
    elif kept:
        require_grown(bundle, latest, kept)
    if bundle["workflow_id"] is None:
        verify_journal(bundle, latest, kept)
    else:
        verify_workflow(bundle, latest, kept)
    return summary(bundle, latest, kept, key)


def require_same(bundle, latest):
    """Size, root and name of the tree are those that are signed."""
    workflow_id, ends = bundle["workflow_id"], bundle["next_after"]
    require(workflow_id is None or isinstance(workflow_id, str), "a text is missing")
    require(latest.origin == bundle["origin"], "the checkpoint belongs to another journal")
    is_same_tree = is_whole(bundle["size"]) and bundle["size"] == latest.size and hash_in(bundle["root"]) == latest.root
    require(is_same_tree, "the checkpoint belongs to another tree")
    goes_on_there = workflow_id is None and is_whole(ends) and ends == latest.size
    require(ends is None or goes_on_there, "the next part does not begin here")


def require_part(bundle, latest, kept, is_asked):
    """The tree of the bundle, which ends before the one that was kept, is the beginning of that."""
    was, now, consistency = kept.size, latest.size, bundle["consistency"]
    is_part = bundle["workflow_id"] is None and bundle["next_after"] is not None
    require(is_part, f"the journal has {now} events, and had {was}: it was truncated")
    reason = f"the bundle ends with event {now}, before the {was} events of the checkpoint that was kept"
    require(is_asked, f"{reason}; if it is one part of several, say so with --part")
    shows_it = consistency is not None and consistency["from"] == was
    require(shows_it, f"nothing shows that this part belongs to the journal of {was} events: ask for it with from={was}")
    proof = [hash_in(text) for text in consistency["proof"]]
    reason = f"the part is not of the journal whose checkpoint of {was} events was kept: history was changed"
    require(is_grown(now, latest.root, was, kept.root, proof), reason)


def require_grown(bundle, latest, kept):
    was, now = kept.size, latest.size
    consistency = bundle["consistency"]
    if now == was or (consistency and consistency["from"] == was):
        proof = [hash_in(text) for text in consistency["proof"]] if now != was else []
        reason = f"the journal does not continue from the checkpoint of {was} events: history was changed"
        if now == was:
            require(kept.root == latest.root, reason)
        else:
            require(is_grown(was, kept.root, now, latest.root, proof), reason)
    else:
        leaves_show_it = bundle["workflow_id"] is None and bundle["after"] <= was
        require(leaves_show_it, f"nothing shows that the journal continues from {was} events: ask for it with from={was}")


def verify_journal(bundle, latest, kept):
    tree = Tree(bundle["after"], [hash_in(text) for text in bundle["edge"]])

    def require_kept():
        if kept and tree.size == kept.size:
            reason = f"the first {kept.size} events are not those of the checkpoint that was kept: history was changed"
            require(tree.root() == kept.root, reason)

    require_kept()
    for item in bundle["events"]:
        event, expected = item["event"], tree.size + 1
        require(event["seq"] == expected, f"event {expected} is missing: event {event['seq']} is in its place")
        tree.append(leaf_of(event))
        require_kept()
    require(tree.size == latest.size, f"the events after {tree.size} are missing")
    require(tree.root() == latest.root, "the events are not those of the checkpoint")


def verify_workflow(bundle, latest, kept):
    workflow_id, begins = bundle["workflow_id"], bundle["after"]
    stated = latest.workflows.get(workflow_id)
    require(stated is not None, "the checkpoint does not state how many events the workflow has")
    at_begin, before = latest.before.get(workflow_id, (None, None)) if begins > 0 else (0, 0)
    reason = f"the checkpoint does not state how many events the workflow has up to event {begins}, where the bundle begins"
    require(at_begin == begins, reason)
    seq, number, of_kept = begins, before, before
    for item in bundle["events"]:
        event, at = item["event"], item["event"]["seq"]
        require(event["workflow_id"] == workflow_id, f"event {at} belongs to another workflow")
        require(is_whole(at) and seq < at <= latest.size, f"event {at} is out of order")
        reason = f"event {number + 1} of the workflow is missing: number {event['workflow_seq']} is in its place"
        require(is_whole(event["workflow_seq"]) and event["workflow_seq"] == number + 1, reason)
        root = root_with(at - 1, latest.size, leaf_of(event), [hash_in(text) for text in item["proof"]])
        require(root == latest.root, f"event {at} is not the one of the checkpoint")
        seq, number = at, number + 1
        if kept and at <= kept.size:
            of_kept = number
    require(number == stated, f"the workflow has {stated} events, and the bundle ends with number {number}")
    had = kept.workflows.get(workflow_id) if kept else None
    if had is not None:
        # Where the bundle begins behind that checkpoint, others may have come between.
        has_those = before >= had if begins > kept.size else of_kept == had
        reason = f"the workflow had {had} events in the checkpoint that was kept, and has {of_kept} of them"
        require(has_those, reason)


def summary(bundle, latest, kept, key):
    count, workflow_id, begins = len(bundle["events"]), bundle["workflow_id"], bundle["after"]
    what = "the journal" if workflow_id is None else f"the workflow {json.dumps(workflow_id, ensure_ascii=False)}"
    lines = [f"valid: {count} events of {what} in {latest.origin}, a tree of {latest.size} events"]
    if begins > 0:
        lines.append(f"begins after event {begins}: earlier events are not in this bundle")
    if bundle["next_after"] is not None:
        lines.append(f"continues after event {bundle['next_after']}: this is not all of the journal")
    if kept:
        of_part = f"is the beginning of the {kept.size} events whose checkpoint you kept; the others are not in it"
        of_whole = f"continues from the checkpoint of {kept.size} events that you kept"
        lines.append(of_part if kept.size > latest.size else of_whole)
    else:
        lines.append("no checkpoint was given: this shows only that the bundle agrees with itself")
    origin = "the key that you gave" if key is not None else "a key that the bundle names itself; compare it with one you trust"
    lines.append(f"signed by {latest.key}, {origin}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Check a bundle of the seal offline.")
    parser.add_argument("bundle", help="a file with the answer of GET /v1/seal/bundle")
    parser.add_argument("--checkpoint", help="a file with a checkpoint that you kept")
    parser.add_argument("--public-key", help="the key that you trust, name+hash+key")
    parser.add_argument("--after", type=int, default=0, help="the bundle may begin behind this event")
    parser.add_argument("--part", action="store_true", help="the bundle may end before the checkpoint that you kept")
    given = parser.parse_args()
    try:
        # Some editors put a byte order mark before a file.
        with open(given.bundle, encoding="utf-8-sig") as file:
            bundle = json.load(file)
        kept = None
        if given.checkpoint is not None:
            with open(given.checkpoint, encoding="utf-8-sig", newline="") as file:
                kept = file.read()
        lines = verify(bundle, kept, given.public_key, given.after, given.part)
    except (Refused, KeyError, TypeError, AttributeError, ValueError, RecursionError, OSError) as error:
        reason = error if isinstance(error, (Refused, OSError)) else f"it is not a bundle: {error!r}"
        sys.exit(f"not valid: {reason}")
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        # Nobody reads it any more; the exit code says it. What is left is not written again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
