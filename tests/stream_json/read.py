#!/usr/bin/env python3
"""Reads a run's stream-json on standard input as scripts do, and tells what was in it.

    agentd -p "…" --output-format stream-json | tests/stream_json/read.py

Written to the shape that such readers share, not to this program: a field that they take without
asking must be there, a kind of line that they do not know is passed over. Ends with 0 after a good
result, 1 after one that is an error, 2 where the stream is not one.
"""

import json
import sys


class Broken(Exception):
    """The stream is none, and why."""


def block(content):
    """A block of a message, in one line."""
    kind = content["type"]
    if kind == "text":
        return f"says {content['text']}"
    if kind == "thinking":
        return f"thinks {content['thinking']} (signed: {bool(content['signature'])})"
    if kind == "tool_use":
        assert isinstance(content["input"], dict), "the input of a call is an object"
        return f"calls {content['name']} {json.dumps(content['input'])} as {content['id']}"
    if kind == "tool_result":
        word = "failed" if content.get("is_error") else "came back"
        return f"{content['tool_use_id']} {word}: {content['content']}"
    return None


def system(line):
    if line["subtype"] == "init":
        yield f"session {line['session_id']} of {line['model']} with {len(line['tools'])} tools"


def message(line):
    said = line["message"]
    if line["type"] == "assistant":
        assert isinstance(said["model"], str), "an answer names its model"
    content = said["content"]
    if isinstance(content, str):
        yield f"{line['type']}: {content}"
        return
    yield from (text for text in map(block, content) if text)


def result(line):
    # What readers take without asking.
    numbers = [line[name] for name in ("duration_ms", "duration_api_ms", "num_turns")]
    assert all(isinstance(number, int) for number in numbers), "times and turns are whole numbers"
    assert numbers[1] <= numbers[0], "the model was waited for no longer than the run took"
    assert isinstance(line["session_id"], str), "a result names its session"
    cost = line.get("total_cost_usd")
    yield f"cost {'unknown' if cost is None else f'{cost:.6f}'}"
    yield f"{line['subtype']} after {line['num_turns']} turns: {line.get('result')}"


READ = {"system": system, "assistant": message, "user": message, "result": result}


def read(lines):
    """Tells each line; whether the last result is an error."""
    wrong = None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            kind = line["type"]
            for told in READ.get(kind, lambda _: ())(line):
                print(told)
            if kind == "result":
                wrong = line["is_error"]
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise Broken(f"line {number}: {type(error).__name__}: {error}: {text.strip()}") from error
    if wrong is None:
        raise Broken("the stream ended without a result")
    return wrong


def main():
    try:
        return 1 if read(sys.stdin) else 0
    except Broken as broken:
        print(f"read.py: {broken}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
