"""A server of the Model Context Protocol over HTTP, with the standard library alone: the older revision with
sessions and streams, and with `modern` the one without. Used by tests/tools/mcp_http.rs."""
import http.server, json, os, sys, threading, time

HABITS = set(sys.argv[1:])
TOKEN = os.environ.get("SERVER_TOKEN")
SESSION = "session-4711"
STREAMS = []


def tool(name, description, **fields):
    properties = {field: {"type": kind} for field, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": sorted(fields)}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("echo", "Echoes a text.", text="string"),
    tool("headers", "Shows the headers of the request."),
    tool("slow", "Waits.", seconds="number"),
    tool("streams", "How many streams were opened."),
    tool("die", "Ends the server."),
    tool("huge", "Sends 64 MiB."),
]


def result_of(message, headers):
    method, params = message["method"], message.get("params", {})
    if method == "server/discover" and "modern" in HABITS:
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
                "cacheScope": "private", "serverInfo": {"name": "test", "version": "1"}}
    if method == "initialize" and "modern" not in HABITS:
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        given = params.get("arguments", {})
        name = params["name"]
        if name == "echo":
            text = given["text"]
        elif name == "headers":
            # All but the token, which no record may have.
            names = {key.lower(): value for key, value in headers.items() if key.lower() != "authorization"}
            text = json.dumps(names)
        elif name == "streams":
            text = str(len(STREAMS))
        elif name == "slow":
            time.sleep(given["seconds"])
            text = "waited"
        elif name == "huge":
            text = "x" * (64 << 20)
        else:
            os._exit(7)
        return {"content": [{"type": "text", "text": text}]}
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except BrokenPipeError:
            pass  # The client has had enough.

    def do_GET(self):
        if "streams" not in HABITS:
            return self.reply(405, b"")
        # A stream that ends at once and wants to be opened again at once.
        STREAMS.append(time.time())
        self.reply(200, b"retry: 0\n\n", "text/event-stream")

    def do_DELETE(self):
        self.reply(200, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if TOKEN and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401, b"no token", WWW_Authenticate="Bearer")
        if "elsewhere" in HABITS:
            return self.reply(307, b"", Location="http://127.0.0.1:1/mcp")
        message = json.loads(body)
        if "id" not in message:
            return self.reply(202, b"")
        said = {"jsonrpc": "2.0", "id": message["id"]}
        result = result_of(message, self.headers)
        if result is None:
            said["error"] = {"code": -32601, "message": f"no method {message['method']}"}
            return self.reply(404 if "modern" in HABITS else 200, json.dumps(said).encode())
        if message["method"] == "tools/call" and "forgets" in HABITS:
            # It runs the call, and then knows the session no more.
            print("ran", flush=True)
            return self.reply(404, b"")
        said["result"] = result if "modern" not in HABITS else {"resultType": "complete", **result}
        headers = {"Mcp_Session_Id": SESSION} if message["method"] == "initialize" else {}
        if message["method"] == "tools/call" and "modern" not in HABITS:
            stream = f"event: message\ndata: {json.dumps(said)}\n\n".encode()
            return self.reply(200, stream, "text/event-stream")
        self.reply(200, json.dumps(said).encode(), **headers)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
# It ends with the test.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
