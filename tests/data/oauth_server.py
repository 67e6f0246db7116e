"""A server of the Model Context Protocol with an address, and its authorization server, in one program.

Prints its address, then a line for each request to the authorization server. Words on the command line
are its habits: no-registration, short (tokens end at once), wrong-issuer, refuses, no-revocation,
no-renewal (tokens are not renewed), no-answer (nor refused), revocation=URL (revokes there), moved=URL
(answers a revocation with a redirect).
"""

import base64
import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

habits = set(sys.argv[1:])
named = dict(habit.split("=", 1) for habit in habits if "=" in habit)
codes, tokens, refreshes = {}, {}, {}
count = 0


def fresh(kind):
    global count
    count += 1
    return f"{kind}-s3cret-{count}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, status, value=None, headers=()):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def note(self, what, **more):
        print(json.dumps({"what": what, **more}), flush=True)

    def do_GET(self):
        base, place = self.base(), urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(place.query).items()}
        if place.path == "/.well-known/oauth-protected-resource/mcp":
            self.reply(200, {"resource": base + "/mcp", "authorization_servers": [base]})
        elif place.path == "/.well-known/oauth-authorization-server":
            about = {
                "issuer": base,
                "authorization_endpoint": base + "/authorize",
                "token_endpoint": base + "/token",
                "registration_endpoint": base + "/register",
                "revocation_endpoint": named.get("revocation", base + "/revoke"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
            if "no-registration" in habits:
                del about["registration_endpoint"]
            if "no-revocation" in habits:
                del about["revocation_endpoint"]
            self.reply(200, about)
        elif place.path == "/authorize":
            self.note("authorize", scope=query.get("scope"), resource=query.get("resource"),
                      client=query.get("client_id"), method=query.get("code_challenge_method"))
            issuer = "https://other.example" if "wrong-issuer" in habits else base
            if "refuses" in habits:
                answer = {"error": "access_denied", "error_description": "not today"}
            else:
                code = fresh("code")
                codes[code] = query
                answer = {"code": code}
            answer |= {"state": query["state"], "iss": issuer}
            self.reply(302, headers=[("Location", query["redirect_uri"] + "?" + urlencode(answer))])
        else:
            self.reply(404 if place.path != "/mcp" else 405)

    def do_DELETE(self):
        self.reply(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/mcp":
            return self.mcp(json.loads(body))
        if self.path == "/register":
            asked = json.loads(body)
            self.note("register", redirects=asked["redirect_uris"], name=asked["client_name"])
            return self.reply(201, {**asked, "client_id": "made-client"})
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        if self.path == "/revoke" and "moved" in named:
            return self.reply(307, headers=[("Location", named["moved"])])
        if self.path == "/revoke":
            self.note("revoke", hint=form.get("token_type_hint"))
            known = tokens.pop(form["token"], None) or refreshes.pop(form["token"], None)
            return self.reply(200 if known else 400, {})
        if self.path == "/token":
            return self.token(form)
        return self.reply(404)

    def token(self, form):
        kind = form["grant_type"]
        self.note("token", kind=kind, resource=form.get("resource"))
        if kind == "authorization_code":
            asked = codes.pop(form["code"], None)
            mark = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            mark = base64.urlsafe_b64encode(mark).rstrip(b"=").decode()
            if not asked or asked["code_challenge"] != mark:
                return self.reply(400, {"error": "invalid_grant"})
            scope = asked.get("scope", "")
        elif "no-renewal" in habits:
            return self.reply(400, {"error": "invalid_grant", "error_description": "ended by its owner"})
        elif "no-answer" in habits:
            return self.reply(503)
        elif form.get("refresh_token") in refreshes:
            scope = refreshes.pop(form["refresh_token"])
        else:
            return self.reply(400, {"error": "invalid_grant"})
        access, refresh = fresh("access"), fresh("refresh")
        tokens[access] = scope or "plain"
        refreshes[refresh] = scope or "plain"
        return self.reply(200, {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": 1 if "short" in habits else 3600,
            **({"scope": scope} if scope else {}),
        })

    def mcp(self, message):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in tokens:
            where = self.base() + "/.well-known/oauth-protected-resource/mcp"
            challenge = f'Bearer resource_metadata="{where}", scope="files:read"'
            return self.reply(401, {"error": "invalid_token"}, [("WWW-Authenticate", challenge)])
        if "id" not in message:
            return self.reply(202)
        answers = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "scope", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": tokens[token]}]},
        }
        head = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in answers:
            return self.reply(200, {**head, "result": answers[message["method"]]})
        return self.reply(200, {**head, "error": {"code": -32601, "message": "no such method"}})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
server.serve_forever()
