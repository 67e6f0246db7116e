//! Programs that run none of their words, as data: a name of another program among them is only a
//! name. What they run by files of the project, or in a language of their own, is the cage's matter.

use crate::program_name::base_name;
use std::collections::HashSet;
use std::sync::LazyLock;

/// In alphabetical order.
const IDLE: &str = "
    : Rscript ar arch awk b2sum base32 base64 basename bc bg black break bun bunzip2 bzip2
    c++ cal cargo cat cc cd chdir chgrp chmod chown cksum clang clang++ clang-format clear cloc
    cmp code column comm continue corepack cp cpio csplit curl cut date dc dd deno
    df diff dig dir dirname dirs disown dmesg dotnet dpkg du echo ed eg egrep elixir emacs enable
    eslint ex exit expand expr factor false fc fg fgrep file flake8 fmt fold free g++ gawk gcc gem
    getconf getent getopts gh git-lfs go gofmt gpg gradle gradlew grep groups gunzip gzip
    hashdeep head help helm hexdump history host hostname iconv id ifconfig install isort jar
    java javac jest join jq julia kill killall ld ldd less ln locale locate logname
    logout look ls lsb_release lscpu lsof lua luajit lz4 m4 make man mawk md5sum meson mkdir
    mkfifo mktemp mocha more mount mv mvn mvnw mypy mysql nano nawk netstat next nginx ninja nl
    nm node nodejs nproc nslookup numfmt objdump objcopy od openssl paste patch patchelf
    pathchk perl pgrep php ping pip pip3 pipx pkg-config pkill podman-compose popd pr prettier
    printenv protoc ps psql pstree pushd pwd pwdx py.test pylint pypy pypy3 pyright pytest python
    python2 python3 ranlib readelf readlink realpath redis-cli rename return rg rm rmdir rspec
    ruby ruff rubocop rustc rustfmt scala sed seq sha1sum sha224sum sha256sum sha384sum
    sha512sum shasum shellcheck shift shopt shred shuf size sleep sqlite3 ss stat strings
    strip stty sum suspend swift sync sysctl systemctl tac tail tee terraform times top touch tox
    tput tr tree true truncate tsc tsort tty type ulimit umask umount unalias uname unexpand uniq
    unix2dos unlink unrar unxz unzip unzstd uptime users vi view vim virtualenv vitest wait wc
    webpack wget whatis whereis which who whoami whois xxd xz xzcat yamllint yes yq zcat
    zipinfo zstd
";

static NAMES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| IDLE.split_ascii_whitespace().collect());

/// True if this program, in any directory, runs none of its words.
pub(crate) fn is_idle(program: &str) -> bool {
    let name = base_name(program);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    NAMES.contains(name) || (unversioned.len() < name.len() && NAMES.contains(unversioned))
}
