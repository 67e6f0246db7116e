//! Commands against rules, as tables: what must stay allowed, what must not slip through a
//! permission, and what a denial must see.

use super::bench::{Outcome, command, is_noticed, outcome, rule, rule_set, rules};
use approval::SessionRules;
use protocol::judgement::{
    Audience, Basis, JudgedCall, PermissionMode, RuleEffect, RuleSet, Verdict,
};

const ALLOW: &[&str] = &[
    "bash:cargo *",
    "bash:rg *",
    "bash:git status",
    "bash:git log --max-count=*",
    "bash:npm run test*",
    "bash:make -* all",
    "Bash(pytest:*)",
    "Bash(go vet ./...)",
    "bash:./scripts/*.sh *",
    "bash:echo * end",
    "bash:find *",
    "bash:cd sub",
];
const DENY: &[&str] =
    &["bash:sudo *", "bash:rm -rf /*", "Bash(git push:*)", "bash:curl", "bash:*.evil *"];

/// Commands of which rules allow every part: each must run without a question.
#[test]
fn what_stays_allowed() {
    let judge = rules(PermissionMode::DontAsk, ALLOW, &[], DENY);
    let rows = [
        "cargo",
        "cargo build",
        "cargo build --release",
        "  cargo   build\t--release  ",
        "cargo test -p approval -- --test-threads=1",
        "cargo build\n",
        "\ncargo build",
        "cargo fmt --check",
        "cargo run --bin agentd -- -p hello",
        "cargo add serde@1.0 --features=derive",
        "cargo test 'name with blanks'",
        "cargo test \"name with blanks\"",
        "cargo test ''",
        "'cargo' build",
        "\"cargo\" build",
        "car'go' build",
        "cargo metadata --format-version=1",
        "cargo test a::b::c",
        "cargo rustc -- -C target-cpu=native",
        "cargo build --config 'net.offline=true'",
        "cargo test --features a,b,c",
        "cargo doc --target-dir=/tmp/x",
        "cargo test '; rm x'",
        "cargo test \"a && b\"",
        "cargo test 'a | b > c'",
        "cargo test '*'",
        "cargo sudo",
        "rg",
        "rg sudo src",
        "rg 'rm -rf /' docs",
        "rg -n 'fn [a-z]+' src",
        "rg 'curl' README.md",
        "rg -e foo -e bar",
        "rg --glob '*.rs' x",
        "rg '#[test]'",
        "rg '~' src",
        "git status",
        "git log --max-count=5",
        "git log --max-count=",
        "npm run test",
        "npm run test:unit",
        "npm run test-all",
        "make -j4 all",
        "make - all",
        "pytest",
        "pytest -k name tests/unit",
        "go vet ./...",
        "./scripts/build.sh",
        "./scripts/ci/run.sh --fast",
        "echo x end",
        "echo 'a b c' end",
        // More than plain words, of which every command is allowed all the same.
        "cargo b&",
        "cargo b\n#",
        "cargo '$(touch x)'",
        "cargo $HOME",
        "cargo ${IFS}x",
        "cargo b 2>&1",
        "cargo b 2>/dev/null",
        "env cargo b",
        "command cargo b",
        "exec cargo b",
        "builtin cargo b",
        "eval cargo b",
        "eval 'cargo b'",
        "sh -c 'cargo b'",
        "bash -c 'cargo b'",
        "xargs cargo b",
        "timeout 5 cargo b",
        "nice cargo b",
        "nohup cargo b",
        "! cargo b",
        "time cargo b",
        "{ cargo b; }",
        "(cargo b)",
        "c\\argo b",
        "cargo \\\n b",
        "cargo \"a\\\"; rm x\"",
        "cargo {a,b}",
        "cargo *",
        "cargo ?",
        "cargo [a]",
        "cargo ~",
        "cargo ~root/x",
        "cargo !!",
        "cargo #x",
        "cargo b # x",
        "cargo a^b",
        "cargo '日本'",
        "cargo b && cargo test",
        "cargo b; rg x || git status",
        "cargo b | rg warning",
        "cargo b |\n rg warning",
        "cargo b\ncargo test\n",
        "# build first\ncargo b\n\n# then test\ncargo test # all",
        "if cargo b; then cargo test; else git status; fi",
        "if cargo b; then cargo test; elif rg x; then pytest; fi",
        "while ! cargo b; do cargo clean; done",
        "until cargo b; do git status; done",
        "for f in a b 'c d'; do cargo test \"$f\"; done",
        "for f in *.rs; do cargo fmt src/$f; done",
        "case x in a|b) cargo b ;; *) cargo test ;; esac",
        "(cargo b && cargo test) 2>&1 | rg x",
        "{ cargo b\ncargo test; } >/dev/null 2>&1",
        "cargo $(cargo pkgid)",
        "cargo test \"$(git status)\"",
        "cargo b &>/dev/null",
        "cargo b </dev/null",
        "RUST_BACKTRACE=1 cargo test",
        "RUST_LOG=debug,x=info NO_COLOR= cargo test",
        "env RUST_BACKTRACE=full LC_ALL=C cargo test",
        "LC_ALL=C.UTF-8 LANG=de_DE.utf8 cargo test",
        "x=$(git status); cargo test \"$x\"",
        "timeout -k 5 60s cargo test",
        "timeout --signal=KILL 60 nice -n 10 cargo test",
        "stdbuf -oL cargo test | rg x",
        "nohup setsid cargo b >/dev/null 2>&1 &",
        "rg -l x | xargs -r cargo test",
        "rg -l x | xargs -0 -n 1 -P4 cargo test",
        "rg -l x | xargs -I % cargo test %",
        "bash -lc 'cargo b && cargo test'",
        "sh -ec \"cargo b\ncargo test\"",
        "/usr/bin/env cargo b",
        "find . -name '*.rs' -exec rg x {} +",
        "find . -type f -exec cargo fmt -- {} ';' -exec rg x {} \\;",
        "find . -name '*.rs'",
        "rg -n x src/*.rs \"src/$x\"",
        "cargo run -- --flag='a;b'",
        "git --no-pager status",
    ];
    for row in rows {
        assert_eq!(outcome(&judge, &command(row)), Outcome::Allowed, "{row:?}");
    }
}

/// Commands that begin as an allowed one does, and are more: no rule may let them pass.
#[test]
fn what_no_permission_covers() {
    let judge = rules(PermissionMode::DontAsk, ALLOW, &[], &[]);
    let rows = [
        // More than one command.
        "cargo b && rm x",
        "cargo b&&rm x",
        "cargo b; rm x",
        "cargo b;rm x",
        "cargo b || rm x",
        "cargo b | sh",
        "cargo b |& sh",
        "cargo b & rm x",
        "cargo b\nrm x",
        "cargo b\r\nrm x",
        "cargo b\n\nrm x",
        // Out of the directory that the rule names.
        "./scripts/../evil.sh",
        "./scripts/a/../../b/evil.sh x",
        // More of the grammar, with something in it that no rule allows or that cannot be known.
        "cargo b &> x",
        "cargo b &>/dev/null rm x",
        "cargo b > .git/hooks/pre-commit",
        "cargo b >> ../x",
        "cargo b 2> err",
        "cargo b >&x",
        "cargo b 12>/dev/null",
        "cargo b {fd}>/dev/null",
        "LC_ALL=./x cargo b",
        "LC_ALL=ja_JP.SJIS cargo b",
        "LC_ALL=zh_TW\ncargo b",
        "LANG=zh_CN.gb18030; cargo 'b'",
        "env LC_CTYPE=ja_JP.sjis cargo b",
        "LC_ALL=C.UTF-8@x cargo b",
        "RUST_BACKTRACE=1 PATH=. cargo b",
        "PATH=.\ncargo b",
        "PATH=. x=1; cargo b",
        "for PATH in .; do cargo b; done",
        "for http_proxy in x; do cargo b; done",
        "env -S 'cargo b'",
        "env -i cargo b",
        "env -C / cargo b",
        "env RUSTC=./x cargo b",
        "timeout --what 5 cargo b",
        "timeout 5 rm x",
        "xargs -a f cargo b",
        "xargs -I cargo cargo b",
        "rg x | xargs rm",
        "rg -l x | xargs git status",
        "sh -c 'cargo b; rm x'",
        "sh -c \"$x\"",
        "sh -s cargo b",
        "sh -xic 'cargo b'",
        "bash -O extglob -c 'cargo b'",
        "bash script.sh",
        "sh -c 'sh -c \"rm x\"'",
        "eval \"$(cargo b)\"",
        "eval 'cargo b; rm x'",
        "eval cd sub\n./scripts/a.sh",
        "cd sub && ./scripts/a.sh",
        "command cd sub\n./scripts/a.sh",
        "cd sub; rm x",
        "cargo b && (cd sub && rm x)",
        "if cargo b; then rm x; fi",
        "if rm x; then cargo b; fi",
        "while cargo b; do rm x; done",
        "for f in $(rm x); do cargo b; done",
        "case $(rm x) in *) cargo b;; esac",
        "case x in $(rm x)) cargo b;; esac",
        "case x in a) rm x;; esac",
        "case x in a) cargo b;& b) rm x;; esac",
        "cargo() { rm x; }; cargo b",
        "function cargo { rm x; }\ncargo b",
        "alias cargo='rm x'\ncargo b",
        "trap 'rm x' EXIT; cargo b",
        "cargo \"$(rm x)\"",
        "cargo \"${x:-$(rm x)}\"",
        "cargo ${x@P}",
        "cargo $[a[$(rm x)]]",
        "cargo ${!x}",
        "cargo $((a[$(rm x)]))",
        "((a[$(rm x)]))",
        "[[ -v a ]]",
        "echo 'a' b end; x=1 rm y",
        "x=$(rm y); cargo b",
        "\"$x\" b",
        "$x cargo b",
        "*/cargo b",
        "{cargo,x} b",
        "~/cargo b",
        "find . -exec rm {} +",
        "find . -delete",
        "find . -fprint x",
        "find . -exec cargo b ; -exec rm {} +",
        "find . $x",
        "find . -exec {} +",
        "find . -exec sh -c 'rm x' {} +",
        "rg --pre ./x y",
        "rg --pre=./x y",
        "rg x *",
        "rg x $y",
        "rg x src/$y",
        "rg x | xargs rg y",
        "rg x \"$HOME/src\"",
        "find . -exec git status + x ;",
        "find . -exec ./scripts/{}.sh ;",
        "rg x \"$y\"",
        "git -c core.fsmonitor=./x status",
        "git -C sub status",
        "git --exec-path=. status",
        "git -c alias.x=!y x",
        "(cargo b",
        "cargo b)",
        "cargo b; }",
        "cargo b;; rm x",
        "if cargo b; then cargo b",
        "cargo $\\\n(rm x)",
        "cargo b \\\n&& rm x",
        "cargo b &\\\n& rm x",
        "cargo b |\\\n| rm x",
        "cargo\\\nx b",
        "cargo '\u{202e}'",
        "cargo 'a\u{200b}b'",
        "cargo b |& rg x",
        "coproc cargo b",
        "select x in a; do cargo b; done",
        "time -o f cargo b",
        "exec -a x cargo b",
        "sudo -n cargo b",
        "cargo b <&x",
        "<(rm x) cargo b",
        "! rm x",
        "then cargo b",
        // Substitutions.
        "cargo $(touch x)",
        "cargo \"$(touch x)\"",
        "cargo `touch x`",
        "cargo \"`touch x`\"",
        "cargo <(touch x)",
        "cargo >(touch x)",
        "cargo $((1+1))",
        "cargo $'a\\nb'",
        "$(echo cargo) b",
        "$CARGO b",
        // Redirections and here-documents.
        "cargo b > /etc/passwd",
        "cargo b >> ~/.bashrc",
        "cargo b < x",
        "cargo b <<EOF\nx\nEOF",
        "cargo b <<< x",
        "cargo b &> x",
        "cargo b >| x",
        // Something before the program's name.
        "X=y cargo b",
        "PATH=. cargo b",
        "PATH=.:$PATH cargo b",
        "X=y",
        "X+=y cargo b",
        "'X=y' cargo b",
        "env X=y cargo b",
        "sudo cargo b",
        "git -c core.pager=x status",
        "git -C / status",
        "if cargo b",
        "cd / && cargo b",
        // Not that program.
        "cargox",
        "cargo-x b",
        "./cargo b",
        "/usr/bin/cargo b",
        "../cargo b",
        "Cargo b",
        "cargo\u{a0}b",
        "c\u{430}rgo b",
        "\u{ff43}argo b",
        "cargo b\u{2028}rm x",
        "cargo\u{200b} b",
        "\u{feff}cargo b",
        "'cargo b'",
        "cargo\\ b",
        "'' cargo b",
        "git status -s",
        "git log --max-count=1 -p",
        "npm run tes",
        "npm run test x",
        "make all",
        "make -j4 all clean",
        "go vet ./... x",
        "./scripts/x.sh.bak",
        "echo end",
        "echo a b end",
        // Quoting and expansion.
        "cargo 'b",
        "cargo \"b",
        "cargo b'",
        "cargo b \\",
        // Bytes.
        "cargo \u{1b}[31m",
        "cargo \u{7f}",
        "cargo \u{8}",
        "cargo 'a\u{7}'",
        "cargo größe",
        "",
        " ",
        "\n",
    ];
    for row in rows {
        assert_eq!(outcome(&judge, &command(row)), Outcome::RefusedByMode, "{row:?}");
    }
    let endless =
        ["cargo ".to_owned() + &"(".repeat(60_000), "cargo ".to_owned() + &"$(".repeat(60_000)];
    for row in endless {
        assert_eq!(outcome(&judge, &command(&row)), Outcome::RefusedByMode);
    }
}

/// Words that make git or `find` run other programs, in every way these programs take them: a `*` of
/// a rule covers none.
#[test]
fn a_star_covers_no_word_that_runs_another_program() {
    let judge =
        rules(PermissionMode::DontAsk, &["bash:git *", "bash:find *", "bash:rg *"], &[], &[]);
    let allowed = [
        "git status",
        "git --no-pager log --oneline --color=never",
        "git --no-pager diff --cached --exit-code",
        "git clone --depth=1 --no-checkout . x",
        "git grep -n --count x",
        "git checkout -q main",
        "git log ./x",
        "find . -exec rg x {} +",
    ];
    for text in allowed {
        assert_eq!(outcome(&judge, &command(text)), Outcome::Allowed, "{text}");
    }
    let refused = [
        "git --no-pager -c core.fsmonitor=./x status",
        "git --no-pager --no-pager -c core.fsmonitor=./x status",
        "git --no-pager config alias.x '!y'",
        "git --no-pager $x status",
        "git --no-pager ./$x status",
        "git grep -O./x y",
        "git grep -nO./x y",
        "git grep --open-files-in-pager=./x y",
        "git grep --open=./x y",
        "git clone -u ./x . y",
        "git clone -nu ./x . y",
        "git clone -c core.fsmonitor=./x . y",
        "git clone --conf=core.fsmonitor=./x . y",
        "git clone --upload-pack ./x . y",
        "git clone --template=./x . y",
        "git clone --templ ./x . y",
        "git init --template=./x",
        "git log --output=build.rs",
        "git diff --no-index --out build.rs a b",
        "git fetch --upload=./x y",
        "git push --rec=./x y",
        "git archive --remote=. --exe=./x HEAD",
        "git remote-ext a './x'",
        "git merge-index ./x -a",
        "git submodule--helper foreach ./x",
        "git fetch ext::./x",
        "find -files0-from x -exec rg y {} ;",
        "find . -ok rg y {} + --pre=./x ';'",
    ];
    for text in refused {
        assert_eq!(outcome(&judge, &command(text)), Outcome::RefusedByMode, "{text}");
    }
}

/// Commands in which a denied one can be seen, with a mode that lets everything else pass.
/// A `*` in the program's place stands for a program, not for a variable that is set for the next.
#[test]
fn a_star_covers_no_variable() {
    let judge = rules(PermissionMode::DontAsk, &["bash:* build"], &[], &[]);
    for text in ["x build", "env x build", "env NO_COLOR=1 x build", "time x build"] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::Allowed, "{text}");
    }
    for text in [
        "a=b build",
        "env a=b build",
        "env LD_PRELOAD=./x build",
        "env NO_COLOR=1 a=b build",
        "time a=b build",
        "nice env a=b build",
        "xargs env a=b build",
    ] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::RefusedByMode, "{text}");
    }
}

#[test]
fn what_a_denial_sees() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], DENY);
    let rows = [
        "sudo",
        "sudo x",
        "sudo -u me x",
        "/usr/bin/sudo x",
        "./sudo x",
        "'sudo' x",
        "s'ud'o x",
        "su\"\"do x",
        "\\sudo x",
        "su\\do x",
        "su\\\ndo x",
        "$'sudo' x",
        "$\"sudo\" x",
        "$'\\x73udo' x",
        "$'su\\144\\u006f' x",
        "$'it\\'s'; sudo x",
        "sud? x",
        "function f { sudo x; }; f",
        "{fd}>/dev/null sudo x",
        "a[1]=2 sudo x",
        "<&- sudo x",
        "1>&- sudo x",
        "<<<y sudo x",
        "sudo${IFS}x",
        "sudo$IFS-n x",
        "su$y'do' x",
        "$1sudo x",
        "su${y}do x",
        "sudo$@ x",
        ". <(echo sudo x)",
        "source <(printf 'sudo x')",
        "env -S 'sudo x'",
        "sg root 'sudo x'",
        "ssh localhost sudo x",
        "tmux new 'sudo x'",
        "bwrap --dev-bind / / sudo x",
        "git submodule foreach 'git push'",
        "torsocks git push",
        "ssh-agent sudo x",
        "hyperfine 'sudo x' ls",
        "hyperfine -w 3 'git push'",
        "nix-shell --run 'git push'",
        "nix-shell -p git --run 'git push'",
        "nix develop -c git push",
        "expect -c 'spawn sudo x'",
        "git rebase --exec 'sudo x' main",
        "git bisect run sudo x",
        "/usr/bin/s[u]do x",
        "/bin/*udo x",
        "cargo b && sudo x",
        "cargo b;sudo x",
        "cargo b||sudo x",
        "cargo b | sudo tee x",
        "cargo b & sudo x",
        "cargo b\nsudo x",
        "cargo b\r\nsudo x",
        "echo $(sudo x)",
        "echo `sudo x`",
        "echo \"$(sudo x)\"",
        "echo \"a `sudo x`\"",
        "cat <(sudo x)",
        "(sudo x)",
        "( ( sudo x ) )",
        "{ sudo x; }",
        "f() { sudo x; }; f",
        "if true; then sudo x; fi",
        "if sudo x; then y; fi",
        "while ! sudo x; do :; done",
        "for i in 1 2; do sudo x; done",
        "case a in a) sudo x;; esac",
        "X=y sudo x",
        "X=y Z+=w sudo x",
        "X= sudo",
        "> f sudo x",
        ">f 2>&1 sudo x",
        "2>/dev/null sudo x",
        "a &> f sudo x",
        "sudo > f x",
        "env sudo x",
        "env -i X=y sudo x",
        "/usr/bin/env sudo x",
        "timeout 5 sudo x",
        "timeout -k 1 5 sudo x",
        "nice -n 5 sudo x",
        "nohup sudo x &",
        "xargs -n1 sudo x",
        "ls | xargs sudo",
        "command sudo x",
        "exec -a y sudo x",
        "time sudo x",
        "env timeout 5 nice sudo x",
        "sh -c 'sudo x'",
        "sh -c sudo",
        "sh -c - sudo",
        "test -v 'a[$(sudo x)]'$y",
        "{sudo,x}<<<y",
        "bash -lc \"sudo x\"",
        "bash -e -c 'cd /; sudo x'",
        "sh -c \"sh -c 'sudo x'\"",
        "env sh -c 'sudo x'",
        "timeout 5 bash -c 'a; b | sudo x'",
        "eval sudo x",
        "eval 'sudo x'",
        "eval \"a; sudo\" x",
        "trap 'sudo x' EXIT",
        "alias a='sudo x'",
        "su -c 'sudo x'",
        "watch 'sudo x'",
        "find . -exec sudo x {} ;",
        "find . -name y -execdir sudo x +",
        "fd -x sudo x",
        "echo 'sudo x' | sh",
        "echo sudo x | bash",
        "printf 'sudo x\\n' | sh -s",
        "sh <<< 'sudo x'",
        "sh <<EOF\nsudo x\nEOF",
        "cat <<EOF\nit's\nEOF\nsudo x",
        "# don't\nsudo x",
        "echo 'unbalanced\nsudo x",
        "{sudo,x}",
        "a; {sudo,x}",
        "rm -rf /",
        "rm -rf /*",
        "rm -rf /etc",
        "rm -rf / --no-preserve-root",
        "rm -rf /etc /usr",
        "rm  -rf   '/'",
        "rm 2>x -rf /",
        "cd x; rm -rf /home",
        "git push",
        "git push origin main",
        "true && git push --force",
        "git -C /x push",
        "git -c a=b --no-pager -C x push origin",
        "env git --git-dir=x push",
        "git -c alias.x='!sudo y' x",
        "curl",
        "sh -c curl",
        "do.evil x",
        "/opt/do.evil x",
    ];
    for row in rows {
        assert!(is_noticed(&judge, row), "{row:?}");
    }
}

/// Commands of plain words, and texts that are written out for a shell, are denied without a question.
#[test]
fn what_a_denial_sees_for_certain() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], DENY);
    for row in [
        "sudo",
        "/usr/bin/sudo x",
        "s'ud'o x",
        "\\sudo x",
        "sudo \"$x\"",
        "a; b && sudo x",
        "echo $(sudo x)",
        "f() { sudo x; }; f",
        "if true; then sudo x; fi",
        "> f sudo x",
        "env -i X=y sudo x",
        "timeout -k 1 5 sudo x",
        "ls | xargs sudo",
        "sh -c \"sh -c 'sudo x'\"",
        "eval 'sudo x'",
        "trap 'sudo x' EXIT",
        "find . -exec sudo x {} ;",
        "sh <<EOF\nsudo x\nEOF",
        "sh <<< 'sudo x'",
        "git -C /x push",
        "git -c alias.x='!sudo y' x",
        "rm -rf /etc",
    ] {
        assert_eq!(outcome(&judge, &command(row)), Outcome::Denied, "{row:?}");
    }
}

/// A denial must not spread to what only mentions it.
#[test]
fn what_a_denial_lets_pass() {
    let judge = rules(PermissionMode::Auto, &[], &[], DENY);
    let rows = [
        "rg sudo src",
        "ssh-agent -k",
        "hyperfine 'ls -l'",
        "nix build",
        "rg sudo src | head",
        "echo sudo",
        "echo 'sudo x' > f",
        "git commit -m 'use sudo less'",
        "git commit -m \"no sudo\" && git log",
        "man sudo",
        "cat sudo.txt; ls",
        "sudoku x",
        "./sudoku.sh && x",
        "rm -rf target",
        "rm -rf ./x && y",
        "rm -f /tmp/x",
        "git pull; git status",
        "git pushx",
        "git log push",
        "git -c alias.x='!ls' x",
        "curl https://example.org | less",
        "find . -name sudo",
        "find . -name sudo -print | wc -l",
        "for i in sudo x; do y; done",
        "cargo test > sudo",
        "bash script.sh sudo",
        "evil x",
        "do.evil.sh | x",
        "",
    ];
    for row in rows {
        assert_eq!(outcome(&judge, &command(row)), Outcome::AllowedByMode, "{row:?}");
    }
}

/// Whoever denies a program is asked where it may be that one, and the question says which word.
#[test]
fn what_may_be_a_denied_command_is_asked_about() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], DENY);
    let alone = RuleSet {
        audience: Audience::NonInteractive,
        ..rule_set(PermissionMode::Auto, &["bash:*"], &[], DENY)
    };
    let alone = SessionRules::new(&alone).unwrap();
    for (row, why) in [
        ("$X y", "`$X` is known only when it runs"),
        ("\"$(which x)\" y", "`\"$(which x)\"` is known only when it runs"),
        ("rm -rf $dir", "`$dir` is known only when it runs"),
        ("git \"$verb\" origin", "`\"$verb\"` is known only when it runs"),
        ("git $args", "`$args` is known only when it runs"),
        ("mywrap git push", "`mywrap` may run what follows it: `git push`"),
        ("echo x | sh", "the input of `sh` is known only when it runs"),
        ("bash -c \"$x\"", "`\"$x\"` is known only when it runs"),
        ("rm -fr /", "`rm -fr /` may mean the same"),
        ("echo x > s; sh s", "it writes the file `s` and runs it"),
        ("sh -c '[[ a || b ]]'", "`sh` may read `[[` in another way than bash"),
        ("a 'b", "agentd cannot read it: `'` is not closed"),
    ] {
        let Verdict::Ask(question) = judge.judge(&command(row)) else { panic!("{row:?}") };
        assert!(question.reason.contains(why), "{row:?}: {}", question.reason);
        assert!(question.reason.starts_with("the rule `"), "{row:?}: {}", question.reason);
        assert!(question.rules().is_empty(), "{row:?}");
        let Verdict::Deny(Basis::NobodyToAsk(_), said) = alone.judge(&command(row)) else {
            panic!("{row:?}")
        };
        assert!(said.contains(why) && said.contains("Write it as plain commands."), "{said}");
    }
    // A question of a rule sees as much, and a person's own text is not asked about.
    let asking = rules(PermissionMode::Auto, &["bash:*"], &["bash:cargo publish *"], &[]);
    assert_eq!(outcome(&asking, &command("$X publish")), Outcome::Asked);
    let own =
        JudgedCall { configured: Some(rule(RuleEffect::Allow, "verify", 1)), ..command("$X y") };
    assert_eq!(outcome(&judge, &own), Outcome::Allowed);
}

/// Claude Code's spellings: in a denial in its brackets a `*` stands for any text of the command.
#[test]
fn a_denial_in_the_brackets_of_claude_code_holds_as_there() {
    let judge = rules(
        PermissionMode::Auto,
        &[],
        &[],
        &["Bash(git * main)", "Bash(*--force*)", "Bash(rm:*)"],
    );
    for (row, expected) in [
        ("git push origin main", Outcome::Denied),
        ("git merge --no-ff a b main", Outcome::Denied),
        ("git push --force-with-lease", Outcome::Denied),
        ("cargo install x --force", Outcome::Denied),
        ("rm x", Outcome::Denied),
        ("git push origin $branch", Outcome::Asked),
        ("git push origin dev", Outcome::AllowedByMode),
        ("ls main", Outcome::AllowedByMode),
    ] {
        assert_eq!(outcome(&judge, &command(row)), expected, "{row}");
    }
}

#[test]
fn a_denial_of_everything_needs_to_see_nothing() {
    for deny in ["bash:*", "bash", "Bash(*)"] {
        let judge = rules(PermissionMode::Auto, &["bash:*"], &[], &[deny]);
        for row in ["ls", "$X", "", "'", "<x", "((((", "# x", "a; b"] {
            assert_eq!(outcome(&judge, &command(row)), Outcome::Denied, "{deny} {row:?}");
        }
    }
}

#[test]
fn a_question_sees_as_much_as_a_denial() {
    let judge = rules(PermissionMode::Auto, &["bash:cargo *"], &["bash:cargo publish *"], &[]);
    for row in [
        "cargo publish",
        "cargo publish --dry-run",
        "cd x && cargo publish",
        "sh -c 'cargo publish'",
    ] {
        assert_eq!(outcome(&judge, &command(row)), Outcome::Asked, "{row:?}");
    }
    assert_eq!(outcome(&judge, &command("cargo build")), Outcome::Allowed);
}

#[test]
fn what_cannot_be_judged_is_refused_whatever_the_mode() {
    let judge = rules(PermissionMode::Auto, &["bash:*"], &[], &[]);
    let mut deep = String::from("x");
    for _ in 0..12 {
        deep = format!("eval {deep}");
    }
    for row in ["cargo\0 b".to_owned(), "cargo b\0".to_owned(), "x".repeat(128 * 1024), deep] {
        assert_eq!(outcome(&judge, &command(&row)), Outcome::Unjudgeable, "{:?}", &row[..9]);
    }
    assert_eq!(outcome(&judge, &command(&"x".repeat(128 * 1024 - 1))), Outcome::Allowed);
    let mut no_command = command("x");
    no_command.command = None;
    assert_eq!(outcome(&judge, &no_command), Outcome::Unjudgeable);
}

#[test]
fn a_wrapper_without_a_command_is_judged_like_any_other() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    for wrapper in ["env", "nice", "nohup", "sudo", "time", "timeout", "xargs", "xargs -I%"] {
        for row in [format!("{wrapper} --"), format!("echo x | {wrapper} --"), wrapper.to_owned()] {
            assert_eq!(outcome(&judge, &command(&row)), Outcome::AllowedByMode, "{row}");
        }
        // Its control: the command behind the same mark.
        let row = format!("{wrapper} -- 1 rm x; {wrapper} -- rm x");
        assert_eq!(outcome(&judge, &command(&row)), Outcome::Denied, "{row}");
    }
}

/// The longest commands there can be, made to be hard. Each takes well under a second; quadratic
/// time would be minutes, which is what this finds on a busy machine too.
#[test]
fn the_longest_commands_are_judged_in_time() {
    let deny: Vec<String> = (0..1_000).map(|n| format!("bash:tool{n} *{n}* x*")).collect();
    let deny: Vec<&str> = deny.iter().map(String::as_str).collect();
    let judge = rules(PermissionMode::Auto, &[], &[], &deny);
    for unit in [
        "(",
        "$(",
        "{a,",
        "sh -c ",
        "env ",
        "eval ",
        "xargs ",
        "find -exec ",
        "env git -c a=!b ",
        "git ",
        "'",
        "\"",
        "\\",
        "<",
        "a;",
        "tool1 ",
        "echo sh ",
        "'a b' ",
        "* ",
    ] {
        let row = unit.repeat(128 * 1024 / unit.len() - 1);
        let before = std::time::Instant::now();
        let _ = outcome(&judge, &command(&row));
        let took = before.elapsed();
        assert!(took.as_secs() < 20, "{unit:?} took {took:?}");
    }
}
