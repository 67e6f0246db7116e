#!/usr/bin/env bash
# Runs the test executables that `cargo test` has built as an unprivileged user: all, or those named
# behind the user (`tests/as-user.sh 65534 bounds cage`), with the arguments behind `--`. Run it as
# root, with the CARGO_TARGET_DIR of that build; the directory must be readable by all.
set -euo pipefail
cd "$(dirname "$0")/.."
user=${1:-65534}
only=() arguments=(--quiet)
[ $# -eq 0 ] || shift
while [ $# -gt 0 ]; do
  if [ "$1" = -- ]; then arguments=("${@:2}"); break; fi
  only+=(--test "$1")
  shift
done

list=$(mktemp)
cargo test --workspace "${only[@]}" --locked --no-run --message-format=json 2>/dev/null \
  | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message.get("profile", {}).get("test"):
        package = message["manifest_path"].rsplit("/", 1)[0]
        name = message["target"]["name"]
        # Tests that need root have targets of their own.
        if not name.endswith("as_root"):
            print(message["executable"], package)
' >"$list"
[ -s "$list" ] || { echo "no test executables; run cargo test first" >&2; exit 1; }

# Not in /tmp, in whose place tier A shows a directory of the session.
home=$(mktemp -d /srv/agentd-user-XXXXXX)
trap 'rm -rf "$home" "$list" "$list.failed"' EXIT
as_user() {
  setpriv --reuid "$user" --regid "$user" --clear-groups env -i PATH="$path" HOME="$home" TMPDIR=/tmp "$@"
}
path=$PATH
chown "$user:$user" "$home"
# Root's own tool chain is behind root's home. The user has it in its own: by hard links where they can be.
if ! as_user cargo --version >/dev/null 2>&1; then
  sysroot=$(rustc --print sysroot)
  toolchain=$home/.rustup/toolchains/$(basename "$sysroot")
  mkdir -p "$toolchain" "$home/.cargo/bin" "$home/.rustup/update-hashes"
  like() { cp -al "$@" 2>/dev/null || cp -a "$@"; }
  # Without its books, which are most of its files.
  like "$sysroot/bin" "$sysroot/lib" "$toolchain"
  like "$(dirname "$(command -v cargo)")/." "$home/.cargo/bin"
  # And the registry's crates, which `cargo tree` reads without network.
  like "${CARGO_HOME:-$HOME/.cargo}/registry" "$home/.cargo"
  printf 'version = "12"\ndefault_toolchain = "%s"\n' "$(basename "$sysroot")" >"$home/.rustup/settings.toml"
  # The folders alone: a file that is linked is root's too.
  find "$home" -type d -exec chown "$user:$user" {} +
  path=$home/.cargo/bin:$PATH
fi
as_user cargo --version >/dev/null || { echo "cargo does not run as user $user" >&2; exit 1; }
# Two executables at a time, since the end-to-end tests wait most of their time. Each is shown when it ends.
one() {
  local shown passed
  # Until it has passed and is shown, it has failed.
  mkdir "$list.failed/$3"
  shown=$(mktemp)
  if (cd "$2" && as_user CARGO_MANIFEST_DIR="$2" RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}" \
    "$1" "${arguments[@]}" </dev/null) >"$shown" 2>&1; then
    passed=true
  else
    passed=false
  fi
  flock "$list" cat <(echo "== $1") "$shown"
  rm "$shown"
  ! $passed || rmdir "$list.failed/$3"
}
mkdir "$list.failed"
while read -r executable package; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
  one "$executable" "$package" "$(basename "$executable")" &
done <"$list"
wait
failed=$(find "$list.failed" -mindepth 1 | wc -l)
find "$list.failed" -mindepth 1 -printf 'failed: %f\n'
echo "as user $user: $(wc -l <"$list") test executables, $failed failed"
[ "$failed" -eq 0 ]
