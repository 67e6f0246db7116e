"""A server of the Model Context Protocol whose lists and answers are odd: tests/tools/mcp_odd.rs."""
import json, sys, time

TEXT = {"type": "string"}
SCHEMAS = {
    "plain": {"type": "object", "properties": {"a": TEXT}},
    "empty": {},
    "choices": {"oneOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}]},
    "filter": {"type": "object", "properties": {"$filter": TEXT}, "required": ["$filter"]},
    "refers": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"const": 1}}},
    "formats": {"type": "object", "properties": {"u": {"type": "string", "format": "uri"}}},
    "list": {"type": "array"},
    "none": None,
}
ANSWERS = {
    "half": b'"\\ud83d half"', "byte": b'"\xff byte"', "huge": b'"' + b"x" * (17 << 20) + b'"',
    "deep": b'[' * 50000 + b']' * 50000, "torn": b'{"a":', "nan": b'NaN',
}


def say(data):
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def answer(number, result):
    say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


def tools():
    listed = [{"name": name, "description": "Odd.", "inputSchema": schema} for name, schema in SCHEMAS.items()]
    del listed[-1]["inputSchema"]
    return listed + [{"name": name, "inputSchema": {"type": "object"}} for name in ANSWERS]


for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        answer(number, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "odd", "version": "1"}})
    elif method == "tools/list":
        answer(number, {"tools": tools() if not message.get("params", {}).get("cursor") else [],
                        "nextCursor": "again"})
    elif method == "tools/call":
        name, given = message["params"]["name"], message["params"].get("arguments", {})
        if name in ANSWERS:
            content = b'"result":{"content":[{"type":"text","text":' + ANSWERS[name] + b'}]}'
            place = b'"id":%d,' % number if given.get("place") != "none" else b""
            say(b'{"jsonrpc":"2.0",' + place + content + b'}')
        else:
            answer(number, {"content": [{"type": "text", "text": "given " + json.dumps(given)}]})
    elif number is not None:
        say(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}).encode())
