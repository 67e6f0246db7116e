"""A server with TLS that hosts git repositories by `git http-backend`, and pages, for who has its key.

Arguments: address, port, file of certificate and key, the key's header, directory of repositories. Prints
`ready`, then a line of JSON for each request that it reads. Below /careless/ it reads no bodies, as some
servers do: what follows a head is the next request there.
"""

import json
import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

address, port, certificate, wanted, root = sys.argv[1:]
connections = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        global connections
        connections += 1
        self.number = connections
        super().setup()

    def log_message(self, *_):
        pass

    def body(self):
        if self.path.startswith("/careless/"):
            return b""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def answer(self):
        signed = self.headers.get("Authorization") == wanted
        row = {"method": self.command, "path": self.path, "signed": signed, "connection": self.number}
        row["headers"] = {name.lower(): value for name, value in self.headers.items()}
        print(json.dumps(row), flush=True)
        body = self.body()
        if not signed:
            return self.reply(401, "text/plain", b"sign in first\n")
        path, _, query = self.path.partition("?")
        if ".git/" not in path:
            return self.reply(200, "text/plain", b"private page\n")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        ran = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True)
        head, _, text = ran.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.reply(int(lines.get("Status", "200 OK").split()[0]), lines.get("Content-Type", ""), text)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer


server = ThreadingHTTPServer((address, int(port)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("ready", flush=True)
server.serve_forever()
