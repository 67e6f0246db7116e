#!/usr/bin/env bash
# Runs the test executables that `cargo test` has built as an unprivileged user: all of them, or those
# named behind the user (`tests/as-user.sh 65534 bounds cage`). Run it as root, with the
# CARGO_TARGET_DIR of that build; the directory must be readable by all.
set -euo pipefail
cd "$(dirname "$0")/.."
user=${1:-65534}
only=()
for name in "${@:2}"; do only+=(--test "$name"); done

list=$(mktemp)
cargo test --workspace "${only[@]}" --locked --no-run --message-format=json 2>/dev/null \
  | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message.get("profile", {}).get("test"):
        package = message["manifest_path"].rsplit("/", 1)[0]
        name = message["target"]["name"]
        # Tests that need root stand in targets of their own.
        if not name.endswith("as_root"):
            print(message["executable"], package)
' >"$list"
[ -s "$list" ] || { echo "no test executables; run cargo test first" >&2; exit 1; }

home=$(mktemp -d /tmp/agentd-user-XXXXXX)
chown "$user:$user" "$home"
failed=0
ran=0
# By another descriptor: a test that reads its input would eat the names of those behind it.
while read -r executable package <&3; do
  ran=$((ran + 1))
  echo "== $executable"
  (exec 3<&- && cd "$package" && setpriv --reuid "$user" --regid "$user" --clear-groups \
    env -i PATH="$PATH" HOME="$home" TMPDIR=/tmp CARGO_MANIFEST_DIR="$package" "$executable" --quiet </dev/null) || failed=$((failed + 1))
done 3<"$list"
rm -rf "$home" "$list"
echo "as user $user: $ran test executables, $failed failed"
[ "$failed" -eq 0 ]
