"""Packages of a small MCP server: wheels in DIR/wheels, and a registry of npm that it serves until its input ends. The version 3.0.0 of
npm has a wrong hash. Used by tests/tools/mcp_install.rs, as `packages.py DIR SERVER`; prints the port of the registry."""
import base64, hashlib, http.server, io, json, os, sys, tarfile, threading, zipfile

DIR, SERVER = sys.argv[1:]
SOURCE = open(SERVER).read()


def wheel(version):
    files = {
        "tiny_server/__init__.py": "def main():\n    import tiny_server.server\n",
        "tiny_server/server.py": SOURCE,
        f"tiny_server-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tiny-server\nVersion: {version}\n",
        f"tiny_server-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"tiny_server-{version}.dist-info/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
    }
    record = f"tiny_server-{version}.dist-info/RECORD"
    lines = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}"
             for name, text in files.items()]
    with zipfile.ZipFile(f"{DIR}/wheels/tiny_server-{version}-py3-none-any.whl", "w") as out:
        for name, text in {**files, record: "\n".join([*lines, f"{record},,"]) + "\n"}.items():
            out.writestr(name, text)
    # A page names the hash of each; pip before 23.1 reports none for a directory's files.
    with open(f"{DIR}/wheels/index.html", "a") as page:
        file = f"tiny_server-{version}-py3-none-any.whl"
        page.write(f'<a href="{file}#sha256={hashlib.sha256(open(f"{DIR}/wheels/{file}", "rb").read()).hexdigest()}">{file}</a>\n')


def archive(description, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in {"package.json": json.dumps(description), **files}.items():
            member = tarfile.TarInfo("package/" + name)
            member.size, member.mode = len(text.encode()), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def served(port):
    pages = {}
    ran = {"postinstall": f"touch {DIR}/ran"}
    names = {"tiny-server": {"bin": {"tiny-server": "server.py"}, "dependencies": {"tiny-dep": "^1.0.0"}}, "tiny-dep": {"scripts": ran}}
    for name, fields in names.items():
        versions = {}
        for version in ["1.0.0", "2.0.0", "3.0.0"] if name == "tiny-server" else ["1.0.0"]:
            description = {"name": name, "version": version, **fields}
            files = {"server.py": "#!/usr/bin/env python3\n" + SOURCE} if name == "tiny-server" else {}
            bytes = archive(description, files)
            pages[f"/{name}-{version}.tgz"] = bytes
            hashed = b"another" if version == "3.0.0" else bytes
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(hashed).digest()).decode()
            tarball = f"http://127.0.0.1:{port}/{name}-{version}.tgz"
            versions[version] = {**description, "dist": {"tarball": tarball, "integrity": integrity}}
        pages[f"/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": versions}).encode()
    return pages


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = PAGES.get(self.path)
        self.send_response(200 if page else 404)
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, *_):
        pass


os.makedirs(f"{DIR}/wheels")
wheel("1.0"), wheel("2.0")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
PAGES = served(server.server_port)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
