//! What a denial notices behind variables: each spelling is first run by a real bash, which removes the
//! file, and must then be denied or asked about where a rule denies `rm *`, whatever the mode.

use super::bench::{Outcome, command, is_noticed, outcome, removes_f, rules};
use protocol::judgement::{Basis, PermissionMode, Verdict};

/// Spellings of `rm f`.
const SPELLINGS: &[&str] = &[
    // Assignments.
    "x=rm; $x f",
    "x=rm; \"$x\" f",
    "x=rm; ${x} f",
    "x=rm && $x f",
    "x=rm\n$x f",
    "x='rm f'; $x",
    "x=r; y=m; $x$y f",
    "x=r; ${x}m f",
    "x=r; x+=m; $x f",
    "x=r; x=${x}m; $x f",
    "x=rm; y=$x; $y f",
    "x=rm y=f; $x $y",
    "x='r m'; ${x// /} f",
    "x=/bin/rm; $x f",
    "x=bin; /$x/rm f",
    "x=; ${x}rm f",
    "x=echo; x=rm; $x f",
    "x=rm; if true; then $x f; fi",
    "if true; then x=rm; else x=ls; fi; $x f",
    "x=rm; ($x f)",
    "x=rm; { $x f; }",
    "x=rm; true | $x f",
    "x=rm; $x f &\nwait",
    "x=rm; ! $x f",
    "x=rm; $x -f -- f",
    "x=rm; command $x f",
    "x=rm; exec $x f",
    "x=rm; env $x f",
    "x=rm; timeout 5 $x f",
    "x=rm; echo f | xargs $x",
    "x=rm; find . -name f -exec $x {} +",
    "x=$'\\x72m'; $x f",
    "x=\"r\"'m'; $x f",
    "x=ls; x=${x/ls/rm}; $x f",
    "x=xrm; ${x#x} f",
    "x=rmx; ${x%x} f",
    "x=xxrmyy; x=${x#xx}; ${x%%y*} f",
    "x=RM; ${x,,} f",
    "x=arms; ${x:1:2} f",
    "${x:-rm} f",
    "${x:=rm} f",
    "x=1; ${x:+rm} f",
    "x=rm; y=x; ${!y} f",
    ": rm; $_ f",
    "IFS=,; x=rm,f; $x",
    // Builtins that set.
    "declare x=rm; $x f",
    "declare -r x=rm; $x f",
    "export x=rm; $x f",
    "export x=rm; sh -c '$x f'",
    "readonly x=rm; $x f",
    "typeset x=rm; $x f",
    "n=x; declare \"$n=rm\"; $x f",
    "printf -v x '%s' rm; $x f",
    "read x <<< rm; $x f",
    "read -r x y <<< 'rm f'; $x $y",
    "echo rm | while read x; do $x f; done",
    "while read x; do $x f; done < <(echo rm)",
    "mapfile -t a <<< rm; ${a[0]} f",
    // Positional parameters.
    "set -- rm f; \"$@\"",
    "set -- rm f; $*",
    "set -- rm f; $1 $2",
    "set rm f; $@",
    "set -- a rm f; shift; \"$@\"",
    "set -- a rm f; ${@:2}",
    "set -- rm; for x; do $x f; done",
    "bash -c '$0 f' rm",
    "bash -c '\"$@\"' _ rm f",
    "sh -c '$1 f' sh rm",
    // Functions.
    "f() { \"$@\"; }; f rm f",
    "function g { \"$@\"; }; g rm f",
    "g() { $1 f; }; g rm",
    "g() { local x=$1; $x f; }; g rm",
    "g() { shift; \"$@\"; }; g a rm f",
    "g() { h \"$@\"; }; h() { \"$@\"; }; g rm f",
    "g() { $x f; }; x=rm; g",
    "g() { echo rm; }; $(g) f",
    "g() ( \"$@\" ); g rm f",
    // Loop words.
    "for x in rm; do $x f; done",
    "for x in ls rm; do $x f; done",
    "for x in r; do for y in m; do $x$y f; done; done",
    "for x in rm\\ f; do $x; done",
    "a=(rm); for x in \"${a[@]}\"; do $x f; done",
    // Arrays.
    "a=(rm f); \"${a[@]}\"",
    "a=(rm f); ${a[*]}",
    "a=(ls rm); ${a[1]} f",
    "a=(ls rm); ${a[-1]} f",
    "a=(); a+=(rm); a+=(f); \"${a[@]}\"",
    "a[0]=rm; a[1]=f; \"${a[@]}\"",
    "declare -a a=(rm f); \"${a[@]}\"",
    "declare -A m=([k]=rm); ${m[k]} f",
    "a=(x rm f); \"${a[@]:1}\"",
    "i=1; a=(ls rm); ${a[$i]} f",
    // Brace expansion.
    "{rm,f}",
    "{rm,-f,f}",
    "r{m,} f; rm f",
    "x=rm; {$x,f}",
    "{r..r}m f",
    // Substitutions.
    "$(echo rm) f",
    "`echo rm` f",
    "$(printf rm) f",
    "$(printf '%s' rm) f",
    "$(printf '%s%s' r m) f",
    "$(printf '\\162\\155') f",
    "$(echo -e '\\x72m') f",
    "$(echo -n rm) f",
    "$(echo rm f)",
    "x=$(echo rm); $x f",
    "$(echo $(echo rm)) f",
    "$(echo r)$(echo m) f",
    "$(x=rm; echo $x) f",
    "$(command -v rm) f",
    "$(type -p rm) f",
    "$(cat <<< rm) f",
    "eval \"$(echo rm f)\"",
    // Texts that a shell reads.
    "x=rm; eval \"$x f\"",
    "x=rm; eval '$x f'",
    "eval x=rm; $x f",
    "x=rm; sh -c \"$x f\"",
    "x=rm; bash <<< \"$x f\"",
    "x=rm; echo \"$x f\" | sh",
    "x=rm; bash <<E\n$x f\nE",
    "bash <<'E'\nx=rm\n$x f\nE",
    "x=rm; trap '$x f' EXIT",
    "$SHELL -c 'rm f'",
    "\"$BASH\" -c 'rm f'",
    "x=sh; $x -c 'rm f'",
    "x=c; sh -$x 'rm f'",
    "x=eval; $x rm f",
    "source <(x=rm; echo \"$x f\")",
    "# it's a comment\nx=rm; $x f",
    // Assignments that hold for one command, in a child, or not at all.
    "x=rm; x=ls true; $x f",
    "x=rm; x= true; $x f",
    "x=rm; y=$(x=ls); $x f",
    "x=rm; : $(x=ls); $x f",
    "x=rm; bash -c 'x=ls'; $x f",
    "x=rm; bash <<< 'x=ls'; $x f",
    "x=rm; env x=ls true; $x f",
    "x=rm\nx=$((1/0))ls\n$x f",
    "x=rm; local x=ls; $x f",
    "readonly x=rm; declare x=ls; $x f",
    "readonly x=rm; unset x; $x f",
    "readonly x=rm; read x <<< ls; $x f",
    "readonly x=rm; printf -v x ls; $x f",
    "readonly x=rm\nx=ls\n$x f",
    "x=rm; readonly x\nx=ls\n$x f",
    "x=rm; unset -f x; $x f",
    "x=rm; declare -p x=ls; $x f",
    "x=rm; export -f x=ls; $x f",
    "x=rm; read -t 0 x <<< ls; $x f",
    "x=rm; command -v export x=ls; $x f",
    "x=rm; echo export x=ls; $x f",
    "x=rm; /bin/printf -v x ls; $x f",
    "x=rm; xargs read x <<< ls; $x f",
    "x=ls; unset x; ${x:-rm} f",
    "x=ls; g() { local x; ${x:-rm} f; }; g",
    // Functions that call each other, and operations that are no loop.
    "f() { \"$@\"; }; f f rm f",
    "f() { if test \"$1\"; then $1 f; f; fi; }; f rm",
    "f() { g \"$@\"; }; g() { if test $2; then $1 $2; f; fi; }; f rm f",
    "x=abrm; ${x#?*b} f",
    "x=rmabab; ${x%%a*b} f",
    "x=rmabab; x=${x%a*b}; ${x%a?} f",
    "x=rm; cat <<E >/dev/null\nit's\nE\n$x f",
];

/// Texts that have the same words in them and remove nothing.
const TWINS: &[&str] = &[
    "echo rm f",
    "x=rm; echo $x",
    "x=rm; echo \"$x f\"",
    "x=rm",
    "x=rm; x=echo; $x f",
    "x=rm; unset x; ls $x",
    "for x in rm f; do echo $x; done",
    "a=(rm f); echo \"${a[@]}\"",
    "set -- rm f; echo \"$@\"",
    "printf '%s\\n' $(echo rm) f",
    "g() { echo \"$@\"; }; g rm f",
    "echo {rm,f}",
    "echo {1..100000} >/dev/null",
    "x=rm; [[ $x == rm ]] && echo yes",
    "x=rm; case $x in rm) echo yes;; esac",
    "for i in {1..50}; do echo $i rm; done",
    "x=rm; test \"$x\" = f",
    "grep -c rm f",
    "cat <<E\nrm: f\nE",
    "x=$(echo rm); echo \"$x\"",
    "a=(rm f); b+=(rm f); ls",
    "x=(rm f) && ls",
    "x=rm; x=$(echo ls); $x f",
    "x=; x+=l; x+=s; $x f",
    "x=rmx; ${x#*m} f",
];

/// Scripts that people write: no limit is met.
const ORDINARY: &[&str] = &[
    "walk() { for f in \"$1\"/*; do if [ -d \"$f\" ]; then walk \"$f\"; fi; done; }; walk .",
    "f() { f; }; f",
    "f() { g; }; g() { f; }; f",
    "down() { if [ $1 -gt 0 ]; then echo $1; down $(($1-1)); fi; }; down 5",
    "each() { [ $# -gt 0 ] || return; echo $1; shift; each \"$@\"; }; each 1 2 3 4 5 6 7 8 9 10 11 12",
];

/// Texts that grow are judged in time; where the program is not written out, the user is asked.
#[test]
fn a_text_that_grows_is_judged_in_time() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let many = |text: &str, count: usize| text.repeat(count);
    let doubling = format!("x=r; {}$x f", many("x=$x$x$x; ", 60));
    let padded = format!("{}x=rm; $x f", many("y=1; echo $y; ", 2000));
    let nested = format!("x=rm; {}$x f{}", many("$(", 500), many(")", 500));
    for (text, expected) in [
        ("{1..9999999}{1..999999} f", Outcome::Asked),
        ("echo {1..9999999}{1..999999}; ls", Outcome::AllowedByMode),
        ("for i in {1..9999999}; do echo $i; done", Outcome::AllowedByMode),
        (&doubling, Outcome::Asked),
        (&padded, Outcome::Asked),
        (&nested, Outcome::Asked),
    ] {
        let shown: String = text.chars().take(60).collect();
        assert_eq!(outcome(&judge, &command(text)), expected, "{shown}");
    }
    // Brackets that close: the stack is bounded by the depth, not by the text.
    for (open, close) in [("$((", "))"), ("${a[", "]}"), ("$(", ")"), ("$[", "]"), ("{ ", "; }")] {
        let text = format!("x=1; echo {}1{}", many(open, 9000), many(close, 9000));
        let _ = outcome(&judge, &command(&text));
    }
    let length = 64 * 1024;
    for piece in [
        "$(",
        "${x:-",
        "{",
        "{a,b}",
        "x=$x$y;",
        "f(){ f;};f;",
        "eval ",
        "`",
        "<<E ",
        "$x ",
        "{{{,}",
        "a+=($a);",
        "for x in $x;do ",
        "set -- $@ $@;",
        "\"$@\" ",
        "${!x}",
        "bash -c '",
        "<(",
        "$((",
        "((",
        "$[",
        "${a[",
        "a[$((",
        "[[ ",
        "case x in ",
        "f() if ",
        "f() ",
        ":<<E;",
        "<(<<E\n",
    ] {
        let text = many(piece, length / piece.len());
        for text in
            [text.clone(), format!("x=a y=b; {text}"), format!("x='a b'; set a b; {text}}})")]
        {
            let begin = std::time::Instant::now();
            let _ = outcome(&judge, &command(&text));
            let took = begin.elapsed();
            assert!(took.as_secs() < 30, "{took:?}: {piece}");
        }
    }
}

#[test]
fn what_bash_runs_as_a_denied_program_is_noticed_in_every_mode() {
    assert!(SPELLINGS.len() >= 60);
    let noticed = |mode: PermissionMode, allow: &[&str], script: &str| {
        is_noticed(&rules(mode, allow, &[], &["bash:rm *"]), script)
    };
    let not_run: Vec<_> = SPELLINGS.iter().filter(|script| !removes_f(script)).collect();
    assert!(not_run.is_empty(), "bash does not remove the file: {not_run:#?}");
    for (mode, allow) in [
        (PermissionMode::Auto, &[][..]),
        (PermissionMode::Ask, &["bash:*"]),
        (PermissionMode::AcceptEdits, &[]),
    ] {
        let passed = SPELLINGS.iter().filter(|script| !noticed(mode, allow, script));
        let passed: Vec<_> = passed.collect();
        assert!(passed.is_empty(), "{mode:?} lets pass {passed:#?}");
    }
    let ran: Vec<_> = TWINS.iter().filter(|script| removes_f(script)).collect();
    assert!(ran.is_empty(), "bash removes the file: {ran:#?}");
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let outcomes = TWINS.iter().map(|script| (script, outcome(&judge, &command(script))));
    let refused: Vec<_> = outcomes
        .clone()
        .filter(|(_, found)| !matches!(found, Outcome::AllowedByMode | Outcome::Asked))
        .collect();
    assert!(refused.is_empty(), "denied, though it removes nothing: {refused:#?}");
    let asked: Vec<_> = outcomes.filter(|(_, found)| *found == Outcome::Asked).collect();
    assert!(asked.len() <= 5, "asked about, though each program is written out: {asked:#?}");
}

/// Scripts that people write: of a function the words that it gets are compared too.
#[test]
fn ordinary_scripts_are_not_denied() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let defaults: String = (0..40).map(|n| format!("a{n}=${{A{n}:-{n}}}\n")).collect();
    let cuts: String = (0..40).map(|n| format!("a{n}=${{A{n}%.txt}}\n")).collect();
    let chain: String = (0..20).map(|n| format!("s{n}() {{ s{}; }}\n", n + 1)).collect();
    let (defaults, cuts, chain) =
        (defaults + "ls $a1", cuts + "ls $a1", chain + "s20() { ls; }\ns0");
    for text in ORDINARY.iter().copied() {
        let found = outcome(&judge, &command(text));
        assert!(matches!(found, Outcome::AllowedByMode | Outcome::Asked), "{found:?}: {text}");
    }
    for text in [&defaults, &cuts, &chain] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::AllowedByMode, "{text}");
    }
    // Positive controls: the same ones with the program that is denied.
    for text in [
        defaults + "\n$A1 rm; x=rm; $x f",
        chain.replace("ls", "x=rm; $x f"),
        "f() { \"$@\"; }; f f f f f f rm f".to_owned(),
    ] {
        assert!(is_noticed(&judge, &text), "{text}");
    }
    // No pattern is compared with a value, however long both are.
    let (text, pattern) = ("a".repeat(30_000), "*a".repeat(10_000));
    for op in ["#", "##", "%", "%%"] {
        assert!(is_noticed(&judge, &format!("x={text}; ${{x{op}{pattern}b}} f")), "{op}");
        assert!(is_noticed(&judge, &format!("x={text}; ${{x{op}*a}} f")), "{op}");
    }
}

/// Rows of a denial, what it may mean too, and what it does not mean.
#[test]
fn words_that_a_program_may_read_like_those_of_a_denial_are_noticed() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            "bash:rm -rf /*",
            &[
                "rm -rf /",
                "rm -fr /",
                "rm -r -f /",
                "rm -f -r /usr",
                "rm -rf -- /",
                "rm -Rf /",
                "rm --recursive --force /",
                "rm --recurs -f /",
                "rm / -rf",
                "rm -rfv /",
                "rm -r / -f",
                "rm -rf --no-preserve-root /",
                "rm -rf build /",
                "/bin/rm -fr -- /",
                "sudo rm -fr /",
                "x=-fr; rm $x /",
                "bash -c 'rm -f -r -- /'",
            ],
            &["rm -rf build", "rm -r /", "rm -f /tmp/x", "rm -- -rf /", "echo rm -fr /", "rm -i /"],
        ),
        (
            "bash:rm -rf build",
            &["rm -fr build", "rm build -rf", "rm -r -f -- build"],
            &["rm -rf build2", "rm -r build", "rm -rf ./buildx"],
        ),
        (
            "bash:git push --force *",
            &[
                "git push -f",
                "git push origin main --force",
                "git push origin -f main",
                "git -C x push -f",
            ],
            &["git push origin main", "git pull --force"],
        ),
        (
            "bash:git reset --hard *",
            &["git reset HEAD~1 --hard", "git reset -q --hard"],
            &["git reset HEAD~1"],
        ),
        (
            "bash:git clean -fd *",
            &["git clean -df", "git clean -d --force", "git clean -xdf"],
            &["git clean -n"],
        ),
        (
            "bash:chmod -R 777 *",
            &["chmod --recursive 777 .", "chmod 777 -R .", "chmod -vR 777 ."],
            &["chmod 777 .", "chmod -R 755 ."],
        ),
        (
            "bash:rm -rf *",
            &["rm --r --f x", "rm -f -r x", "rm --rec --for x", "rm -r --interactive=never -f x"],
            &["rm --dir x", "rm -r x", "rm --one-file-system -r x"],
        ),
        ("bash:rm -r*", &["rm -fr x", "rm -R x", "rm --recursive x"], &["rm x", "rm -f x"]),
        ("bash:git reset --hard", &["git reset --har", "git reset --h"], &["git reset --soft"]),
        (
            "bash:git branch -D *",
            &[
                "git branch -d -f x",
                "git branch -fd x",
                "git branch --delete --force x",
                "git branch --del --forc x",
                "git branch x -D",
            ],
            &[
                "git branch -d x",
                "git branch -f x y",
                "git branch -m -f x y",
                "git branch --format x",
            ],
        ),
        (
            "bash:git push --force*",
            &[
                "git push -f",
                "git push -uf origin main",
                "git push origin +main",
                "git push origin +HEAD:main",
                "git push --force-with-lease",
                "git push --force-w",
                "git push origin --force",
            ],
            &["git push origin main", "git push origin a+b", "git push origin :main"],
        ),
        (
            "bash:git push -f *",
            &["git push origin +main", "git push --force origin", "git -C x push origin +main"],
            &["git push origin main"],
        ),
        (
            "bash:git push --delete *",
            &["git push origin :x", "git push -d origin x", "git push --del origin x"],
            &["git push origin x:y", "git push origin x"],
        ),
        (
            "bash:git commit --no-verify *",
            &["git commit -n -m x", "git commit -nm x", "git commit -am x --no-v"],
            &["git commit -m x", "git commit --no-edit"],
        ),
        (
            "bash:git commit -m wip*",
            &["git commit -m wip", "git commit -a -m wip2"],
            &["git commit -m done", "git commit --amend"],
        ),
        (
            "bash:chmod 777 *",
            &["chmod 0777 x", "chmod a=rwx x", "chmod -R ugo+rwx x"],
            &["chmod 755 x", "chmod +x x", "chmod u+rwx x"],
        ),
        ("bash:mv -f a b", &["mv a b --force", "mv a -f b"], &["mv b a -f", "mv a b"]),
    ];
    for (deny, caught, free) in rows {
        let judge = rules(PermissionMode::Auto, &[], &[], &[deny]);
        for text in *caught {
            assert!(is_noticed(&judge, text), "{deny}: {text}");
        }
        for text in *free {
            assert_eq!(outcome(&judge, &command(text)), Outcome::AllowedByMode, "{deny}: {text}");
        }
    }
}

/// A program's name from outside the text: a denial asks, and without one the record says that no rule saw it.
#[test]
fn a_program_that_the_text_does_not_name_is_asked_about_or_on_record_as_opaque() {
    let denying = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let judge = rules(PermissionMode::Auto, &[], &[], &[]);
    let basis = |text: &str| match judge.judge(&command(text)) {
        Verdict::Allow(basis) => basis,
        other @ (Verdict::Ask(_) | Verdict::Deny(..)) => panic!("{text}: {other:?}"),
    };
    for text in [
        "$(cat program) f",
        "`./which` f",
        "x=$(head -1 list); $x f",
        "read x; $x f",
        "env $(cat program) f",
        "echo mr | rev | { read x; echo; }; $EDITOR f",
        "for x in $(ls); do $x; done",
    ] {
        assert_eq!(basis(text), Basis::Opaque(PermissionMode::Auto), "{text}");
        assert_eq!(outcome(&denying, &command(text)), Outcome::Asked, "{text}");
    }
    for text in
        ["ls", "echo $(cat f)", "x=1; ls $x", "cat \"$HOME/f\"", "for x in *; do ls $x; done"]
    {
        assert_eq!(basis(text), Basis::Mode(PermissionMode::Auto), "{text}");
        assert_eq!(outcome(&denying, &command(text)), Outcome::AllowedByMode, "{text}");
    }
}
