//! Spellings that a denial notices, and others beside them that stay free. They are only judged: no shell
//! runs them, since some would remove more than a file of the test.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::{Outcome, command, is_noticed, outcome, rules};
use protocol::judgement::PermissionMode;

/// A denial, what it notices, and what it does not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

#[test]
fn options_of_shells_hide_no_text() {
    check(&[(
        "bash:rm *",
        &[
            "bash -euo pipefail -c 'rm f'",
            "bash -eo pipefail -c 'rm f'",
            "bash -euxo pipefail -c 'rm f'",
            "bash -ceuo pipefail 'rm f'",
            "bash -oe pipefail -c 'rm f'",
            "sh +n <<< 'rm f'",
            "bash -n +n -c 'rm f'",
            "bash -in <<< 'rm f'",
            "bash -s -c 'rm f' <<< ls",
            "bash --rcfile <(echo rm f) -ic ls",
            "bash --init-file <(echo rm f) -ic ls",
            "bash --rcfile /dev/fd/3 -ic ls 3<<< 'rm f'",
            "echo rm f > s; bash --rcfile s -ic ls",
            "fish --command 'rm f'",
            "fish -C 'rm f'",
            "csh -c 'rm f'",
            "tcsh -fc 'rm f'",
            "yash -c 'rm f'",
        ],
        &[
            "bash -euo pipefail -c 'ls f'",
            "bash -o pipefail -ec ls",
            "sh -n s.sh",
            "bash --norc --noprofile -c ls",
            "bash -euxo pipefail build.sh rm f",
            "echo rm f | bash -n",
        ],
    )]);
}

#[test]
fn braces_and_patterns_are_several_words() {
    check(&[
        (
            "bash:rm -rf /*",
            &["rm {-rf,/}", "rm {-r,-f,/}", "rm -rf {,/}", "rm {-rf,} /"],
            &["rm -{i,v} x", "ls {-rf,/}", "rm build/{a,b}", "rm *.o"],
        ),
        (
            "bash:git push origin *",
            &[
                "git {push,origin} main",
                "git push{,} origin",
                "git pus* origin",
                "git pu{sh,ll} origin x",
            ],
            &["git add {a,b}", "git commit -m {a,b} c", "git log -- {src,tests} *.rs"],
        ),
        (
            "bash:rm *",
            &[
                "find {f,-exec,rm,f,\\;}",
                "git {-c,alias.x=\\!rm\\ f} x",
                "tar {-I,rm} -cf x.tar f",
                "env {A=b,rm,f}",
            ],
            &["find src/{a,b} -name x", "cp {a,b} c", "mkdir -p {a,b}/c", "find . -name {} -print"],
        ),
    ]);
}

#[test]
fn texts_in_one_word_with_an_option_are_read() {
    check(&[
        (
            "bash:rm *",
            &[
                "env -Srm f",
                "env -vSrm f",
                "env --split-string=rm f",
                "env -vS'rm f'",
                "env -S 'rm\\_f'",
                "env -S 'rm\\tf'",
                "env -iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiSrm f",
                "shopt -s expand_aliases\nalias x=rm\nx f",
                "su -lc'rm f'",
                "script -qc'rm f' /dev/null",
                "flock -nc'rm f' x",
                "git rebase --exec=rm main",
            ],
            &[
                "env -i PATH=/bin ls rm",
                "alias ll='ls -l'; ls",
                "ssh -p22 -oBatchMode=yes host uptime",
                "ssh -o StrictHostKeyChecking=no host 'ls f'",
                "watch -n1 ls",
                "flock -n x ls",
                "git rebase --autosquash main",
            ],
        ),
        ("bash:reboot", &["git rebase --exec=reboot main"], &["git rebase --exec=make main"]),
        ("bash:git push *", &["alias g=git\ng push", "env -Sgit push"], &["alias s='git status'"]),
    ]);
}

#[test]
fn a_shell_reads_the_input_that_it_gets() {
    check(&[(
        "bash:rm *",
        &[
            "sh /dev/fd/3 3<<<'rm f'",
            "exec 3<<<'rm f'; bash /dev/fd/3",
            "sh /dev/../dev/stdin <<<'rm f'",
            "cd /dev; sh stdin <<<'rm f'",
            ". //dev/stdin <<<'rm f'",
            ". -- /dev/stdin <<<'rm f'",
            "echo rm f | sh 3<<<ls",
            "sh <<<ls < f2",
            "sh <<<ls <&3",
            "sh <<<ls 0<>f2",
            "sh {x}<<<ls",
            "echo 'rm f' | sudo -iu root",
            "echo 'rm f' | sudo -i -u postgres",
            "echo 'rm f' | ssh -p 22 host",
            "echo 'rm f' | at now + 1 minute",
            "at 'now + 1 minute' <<< 'rm f'",
            "echo 'rm f' | su -s /bin/bash u",
            "echo 'rm f' | nsenter -t 1 -m",
            "echo 'rm f' | script -q /dev/null",
            "echo 'rm f' | fakeroot",
            "fakeroot < s",
            "{ ssh -p 22 host; } < s",
            "echo 'rm f' | { ls; ssh -p 22 host; }",
            "bash <<-E\n\t1\\\n\tE\n\trm f\n\tE",
        ],
        &[
            "sh <<<ls",
            "bash <<E\nls\nE",
            "ssh -p 22 host uptime",
            "tar c . | ssh -p 22 host 'cat > x.tar'",
            "tar c . | ssh host 'tar x'",
            "echo x | sudo tee f",
            "cat dump | sudo -u postgres psql",
            "fakeroot make",
            "while read -r x; do echo $x; done < f",
            "sh -c 'cat' <<< 'rm f'",
        ],
    )]);
}

#[test]
fn literals_that_the_shell_evaluates_are_read() {
    check(&[(
        "bash:rm *",
        &[
            "[[ 'a[$(rm f)]' -eq 0 ]]",
            "for x in 'a[$(rm f)]'; do ((x)); done",
            "read x <<<'a[$(rm f)]'; ((x))",
            "mapfile -t x <<<'a[$(rm f)]'; ((x))",
            "set -- 'a[$(rm f)]'; (( $1 ))",
            "env PS4='$(rm f)' bash -xc ls",
            "a['$(rm f)']=1",
            "a[\"\\$(rm f)\"]=1",
            "echo ${a['$(rm f)']}",
        ],
        &[
            "[[ $x == 'a[rm]' ]]",
            "for x in 'rm f' b; do echo \"$x\"; done",
            "read x <<<'rm f'; echo $x",
            "set -- rm f; echo $1",
            "a['rm f']=1; echo ${a['rm f']}",
            "env FOO='rm f' ls",
        ],
    )]);
}

fn check(rows: &[Row]) {
    for (deny, noticed, free) in rows {
        let judge = rules(PermissionMode::Auto, &[], &[], &[deny]);
        let missed: Vec<_> = noticed.iter().filter(|text| !is_noticed(&judge, text)).collect();
        assert!(missed.is_empty(), "{deny} misses {missed:#?}");
        let of = |text| (text, outcome(&judge, &command(text)));
        let caught = free.iter().map(|text| of(text));
        let caught: Vec<_> = caught.filter(|(_, it)| *it != Outcome::AllowedByMode).collect();
        assert!(caught.is_empty(), "{deny} catches {caught:#?}");
    }
}

/// Words of which each may begin a command take no more time and memory than the text is long.
#[test]
fn many_words_that_may_be_options_stay_cheap() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    for (begin, word) in [
        ("find ", "\"$a\" "),
        ("fd ", "-x "),
        ("env -z ", "-Sa "),
        ("env -z ", "-abcdefghijklmnopqrstuvw "),
        ("env -z ", "a=b=c=d "),
        ("git rebase ", "--exec=ls "),
        ("alias ", "a=b "),
        ("xterm ", "'rm2 f' "),
        ("docker ", "--x y "),
    ] {
        let text = begin.to_owned() + &word.repeat(64 * 1024 / word.len());
        let begun = std::time::Instant::now();
        assert!(is_noticed(&judge, &text) || !word.contains('"'), "{begin}{word}");
        assert!(begun.elapsed().as_secs() < 5, "{begin}{word}: {:?}", begun.elapsed());
    }
}
