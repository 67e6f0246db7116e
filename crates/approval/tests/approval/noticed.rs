//! Spellings that a denial notices, and others beside them that stay free. They are only judged: no shell
//! runs them, since some would remove more than a file of the test.

use super::bench::{Outcome, command, is_noticed, outcome, rule, rule_set, rules};
use approval::SessionRules;
use protocol::judgement::{Audience, ExtraRight, JudgedCall, PermissionMode, RuleEffect, Verdict};

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
        (
            "bash:git push *",
            &[
                "alias g=git\ng push",
                "env -Sgit push",
                "env -S 'git -C x' push",
                "env -S'git -C x' push",
            ],
            &["alias s='git status'"],
        ),
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

#[test]
fn settings_and_options_of_git_run_texts() {
    check(&[
        (
            "bash:git push *",
            &[
                "git -c alias.x=push x origin main",
                "git config alias.x push; git x origin",
                "git config --global Alias.x 'push -v'; git x",
                "git --attr-source HEAD push origin",
                "git --shallow-file x push",
                "git --some-option HEAD push origin",
            ],
            &[
                "git -c user.name=push commit",
                "git config user.name push",
                "git --no-pager log push",
                "git -C x status",
                "git commit -m push",
            ],
        ),
        (
            "bash:rm *",
            &[
                "git clone --config=core.sshCommand='rm f' x",
                "git clone --conf core.sshCommand='rm f' x",
                "git clone -ccore.sshCommand='rm f' x",
                "git clone --upload-pack='rm f' x",
                "git clone -u 'rm f' x",
                "git fetch --upload-pack \"$x\"",
                "git grep -Orm x",
                "git merge-index rm -a",
                "git config core.pager 'rm f'; git log",
                "git config core.editor \"$x\"",
                "git send-email --sendmail-cmd='rm f'",
            ],
            &[
                "git config user.email a@b",
                "git config core.autocrlf input",
                "git config --get core.pager",
                "git log --oneline --output=x",
                "git commit -m 'rm f' --trailer 'x: y'",
                "git clone --depth 1 https://h/rm",
            ],
        ),
    ]);
}

#[test]
fn options_that_are_not_known_may_take_a_word() {
    check(&[
        (
            "bash:pnpm publish *",
            &["pnpm --filter foo publish", "pnpm -r --filter foo publish"],
            &["pnpm --filter foo test", "pnpm --filter=foo test publish"],
        ),
        (
            "bash:docker run *",
            &["docker --log-level debug --tls run x"],
            &["docker ps --format run"],
        ),
        (
            "bash:kubectl delete *",
            &["kubectl --kubeconfig f delete pod x"],
            &["kubectl --kubeconfig f get pods", "kubectl get pods delete"],
        ),
        ("bash:npm publish *", &["npm publish"], &["npm --silent run publish", "npm run publish"]),
    ]);
}

#[test]
fn words_and_options_that_name_a_program_are_compared() {
    check(&[(
        "bash:rm *",
        &[
            "bundle exec rm f",
            "rustup run stable rm f",
            "composer exec rm f",
            "npm exec -- rm f",
            "npm exec -c 'rm f'",
            "pnpm exec rm f",
            "yarn exec rm f",
            "ip netns exec n rm f",
            "cmake -E env rm f",
            "split --filter='rm f' x",
            "zip z f -T -TT 'rm f'",
            "nc -lc 'rm f'",
            "jobs -x rm f",
            "hash -p /bin/rm ls; ls f",
            "compgen -C 'rm f'",
            "rsync -ave 'rm f' a b",
            "rsync --rs='rm f' a b",
            "tar -cvI 'rm f' a",
            "tar --to-comm='rm f' -xf a",
            "tar -F 'rm f' -cf a b",
            "sort --compress-prog=rm f",
            "fd -Hx rm",
            "fd f -xrm",
            "fd -Hx ls -xrm",
            "fd \"$x\" -xrm",
            "fd --exec=rm",
            "scp -o 'ProxyCommand=rm f' a h:b",
            "scp -o 'ProxyCommand rm f' a h:b",
            "scp -oProxyCommand='rm f' a h:b",
            "xterm -e 'rm f'",
            "watchexec 'rm f'",
            "mywrap env -S 'rm f'",
            "GIT_SSH_COMMAND='rm f' git fetch",
            "GIT_PAGER='rm f' git log",
            "EDITOR=rm crontab f",
            "echo rm f > s; BASH_ENV=s bash -c ls",
        ],
        &[
            "bundle install",
            "npm run build",
            "npm install express",
            "cmake --build build --target install",
            "split -l 10 f",
            "zip -r z f",
            "nc -zv host 80",
            "jobs; hash rm",
            "rsync -av --delete a b",
            "tar -czf rm.tgz f",
            "tar --exclude='rm f' -xzf a",
            "sort -u f",
            "fd -e rs rm",
            "fd --max-depth=2 rm",
            "scp -o BatchMode=yes a h:b",
            "mytool --message 'fix: it (is $x'",
            "GIT_SSH_COMMAND='ssh -i k' git fetch",
            "GIT_EDITOR=true git commit",
        ],
    )]);
}

#[test]
fn a_variable_that_names_a_program_is_read_wherever_it_is_set() {
    check(&[
        (
            "bash:evil *",
            &[
                "GIT_PAGER=evil git log",
                "GIT_PAGER=evil; export GIT_PAGER; git log",
                "export GIT_PAGER=evil; git log",
                "export FOO=1 GIT_PAGER='evil -x'; git log",
                "declare -x GIT_PAGER=evil; git log",
                "typeset -x GIT_PAGER=evil; git log",
                "readonly GIT_PAGER=evil; git log",
                "f() { local -x GIT_PAGER=evil; git log; }; f",
                "builtin export GIT_PAGER=evil; git log",
                "bash -c 'export GIT_PAGER=evil; git log'",
                "env GIT_PAGER=evil git log",
                "env -i GIT_PAGER=evil git log",
                "timeout 5 env EDITOR=evil crontab f",
                "sudo GIT_PAGER=evil git log",
                "strace env GIT_PAGER=evil git log",
                "mywrap sudo GIT_PAGER=evil git log",
                "PROMPT_COMMAND+='evil x' bash",
                "export PROMPT_COMMAND+='evil x'",
                "GIT_PAGER=~/bin/evil git log",
                "export GIT_PAGER=$HOME/bin/evil; git log",
                "export GIT_PAGER=\"evil $x\"; git log",
                "env GIT_PAGER=\"$HOME/evil -x\" git log",
            ],
            &[
                "export GIT_PAGER=less; git log",
                "export FOO=evil; git log",
                "env FOO=evil git log",
                "env GIT_PAGER=less git log evil",
                "declare -x FOO=evil GIT_PAGER=cat; git log",
                "printf 'EDITOR=evil\n' >> .env",
                "[ GIT_PAGER=evil = x ]",
                "export -n GIT_PAGER; git log",
                "DIFF_NOTE='evil old files'",
                "export SSH_AUTH_SOCK=evil",
                // A program of which nothing is known is no reason to ask.
                "EDITOR=$x; git commit",
                "env GIT_PAGER=\"$x\" git log",
                "GIT_PAGER=\"$x-evil\" git log",
                "GIT_SSH_COMMAND=\"ssh -i $key\" git fetch",
            ],
        ),
        (
            "bash:rm *",
            &[
                "echo rm f > s; export BASH_ENV=s; bash -c ls",
                "echo rm f > s; env BASH_ENV=s bash -c ls",
                "echo rm f > s; export ENV=s; sh -i",
                "echo rm f > \"$x\"; export ENV=./s; sh -i",
                "echo rm f > s; export ENV=$HOME/s; sh -i",
            ],
            &[
                "echo rm f > s; env FOO=s bash -c ls",
                "export BASH_ENV=s; bash -c ls",
                "export ENV=prod; make >> \"$log\"",
                "ENV=prod\nmake > log",
                "export ENV=$stage; make > log",
            ],
        ),
    ]);
}

/// What a text says in so many words is denied, not asked about.
#[test]
fn what_is_written_out_is_denied() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:git push *", "bash:rm *"]);
    for text in [
        "rm f",
        "rm",
        "/bin/rm f",
        "~/bin/rm f",
        "cd x && rm f",
        "ls; rm -rf f",
        "true || rm f",
        "(rm f)",
        "{ rm f; }",
        "if ls; then rm f; fi",
        "for x in a; do rm $x; done",
        "f() { rm f; }; f",
        "f() { git push; }; true | f",
        "f() { git push; }; true | f | cat",
        "f() ( git push ); cat x | f",
        "function f { git push; }; true | f",
        "function f() { git push; }; true |& f",
        "true | { f() { git push; }; f; }",
        "f() { git push; }; f < x",
        "ls() { git push; }; true | ls",
        "! rm f",
        "x=1 rm f",
        "echo $(rm f)",
        "echo `rm f`",
        "cat < <(rm f)",
        "rm f > x",
        "time rm f",
        "sudo rm f",
        "sudo -u root rm f",
        "env A=b rm f",
        "timeout 5 rm f",
        "nice -n 5 rm f",
        "nohup rm f",
        "xargs rm",
        "ls | xargs -n 1 rm",
        "find . -exec rm {} ;",
        "find . -type f -execdir rm {} +",
        "sh -c 'rm f'",
        "bash -euo pipefail -c 'rm f'",
        "bash <<< 'rm f'",
        "bash <<E\nrm f\nE",
        "eval 'rm f'",
        "trap 'rm f' EXIT",
        "watch 'rm f'",
        "git push",
        "git push origin main",
        "git -C x push origin",
        "git --no-pager push",
        "git commit -m x && git push",
        "git -c core.pager='rm f' log",
        "rsync -e 'rm f' a b",
        "$x; ~/bin/rm f",
    ] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::Denied, "{text}");
    }
    for text in ["f() { git pull; }; true | f", "f() { git log push; }; cat rm | f"] {
        assert_eq!(outcome(&judge, &command(text)), Outcome::AllowedByMode, "{text}");
    }
}

/// The refusal where nobody answers says which word is not known, and so does a question about rights.
#[test]
fn a_refusal_names_the_word_that_is_not_known() {
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::DontAsk] {
        let mut set = rule_set(mode, &[], &[], &["bash:rm *"]);
        set.audience = Audience::NonInteractive;
        let Verdict::Deny(_, text) = SessionRules::new(&set).unwrap().judge(&command("$x f"))
        else {
            panic!("{mode:?}")
        };
        let wanted = "may forbid it, because `$x` is known only when it runs";
        assert!(text.contains(wanted) && text.contains("plain commands"), "{mode:?}: {text}");
    }
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm *"]);
    let case = JudgedCall { extra_rights: vec![ExtraRight::Network], ..command("$x f") };
    let Verdict::Ask(question) = judge.judge(&case) else { panic!() };
    let (rights, word) = ("rights that this session lacks", "`$x` is known only");
    assert!(question.reason.contains(rights) && question.reason.contains(word), "{question:?}");
    assert_eq!(question.rules(), &[] as &[String]);
}

/// Nobody is asked about a hook: of one that is written out another spelling is denied, words that are
/// not known are the user's own.
#[test]
fn a_configured_command_is_denied_where_its_words_are_written_out() {
    let deny = ["bash:rm -rf /*", "bash:git push *"];
    let judge = rules(PermissionMode::Auto, &[], &[], &deny);
    let by = rule(RuleEffect::Allow, "hooks", 1);
    let of =
        |text: &str| outcome(&judge, &JudgedCall { configured: Some(by.clone()), ..command(text) });
    for text in ["rm -fr /", "mywrap git push", "xterm -e 'git push'", "$x f; rm -fr /"] {
        assert_eq!(of(text), Outcome::Denied, "{text}");
    }
    for text in ["$x push", "git $x", "rm $x /", "make", "sh \"$0\" < f"] {
        assert_eq!(of(text), Outcome::Allowed, "{text}");
    }
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

/// What may begin a command takes no more time and memory than the text is long.
#[test]
fn many_words_that_may_be_options_stay_cheap() {
    let judges =
        ["bash:rm *", "bash:rm -rf /*"].map(|deny| rules(PermissionMode::Auto, &[], &[], &[deny]));
    for (begin, word) in [
        ("find ", "\"$a\" "),
        ("fd ", "-x "),
        ("env -z ", "-Sa "),
        ("env -z ", "-abcdefghijklmnopqrstuvw "),
        ("env -z ", "a=b=c=d "),
        ("git rebase ", "--exec=ls "),
        ("alias ", "a=b "),
        ("alias x", "=y"),
        ("xterm ", "'rm2 f' "),
        ("docker ", "--x y "),
        ("xterm ", "env -z -Ssh "),
        ("xterm ", "env -z -Ssh rm "),
        ("xterm ", "'env -z \"env -Sa b\"' "),
        ("mywrap ", "a "),
        ("mywrap ", "PAGER="),
        // Many letters of one word.
        ("watch -", "a"),
        ("watch x", "="),
        ("watch -a", "b="),
        ("env -z -", "a"),
        ("git clone -c", "a"),
        ("git grep -O", "a"),
        ("fd -x", "a"),
        // Many commands.
        ("", "a;"),
        ("", ":;"),
        ("xargs xargs xargs xargs xargs xargs xargs xargs ", "a "),
        ("ssh h '", ":;"),
        ("ssh h '", "a;"),
    ] {
        let text = begin.to_owned() + &word.repeat(64 * 1024 / word.len());
        let end = if begin.ends_with('\'') { "'" } else { "" };
        for judge in &judges {
            let begun = std::time::Instant::now();
            let noticed = is_noticed(judge, &(text.clone() + end));
            assert!(noticed || !word.contains("\"$a"), "{begin}{word}");
            assert!(begun.elapsed().as_secs() < 5, "{begin}{word}: {:?}", begun.elapsed());
        }
    }
    let long = |length: usize, rest: &str| format!("{}{rest}", "a".repeat(length));
    for text in [
        // A long name in a reason, for each of many texts.
        long(32 * 1024, &" 'a b'".repeat(5 * 1024)),
        // A long word that many guesses look at again.
        format!("xterm {} tar -I{}F x", "watch ".repeat(15), long(60 * 1024, "")),
        format!("xterm {} {}PAGER=a", "watch ".repeat(15), long(60 * 1024, "")),
        format!("watch -{} \"${}\"", long(1024, ""), long(60 * 1024, "")),
    ] {
        let begun = std::time::Instant::now();
        is_noticed(&judges[0], &text);
        assert!(begun.elapsed().as_secs() < 5, "{:.40}: {:?}", text, begun.elapsed());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 200 * 1024, "{kib} KiB");
}

/// Texts that take all guesses leave what is certain certain, and are noticed themselves.
#[test]
fn many_guesses_hide_no_command_that_is_written_out() {
    let deny = ["bash:rm -rf *"];
    let judge = rules(PermissionMode::Auto, &[], &[], &deny);
    let asks = rules(PermissionMode::Auto, &[], &deny, &[]);
    for guesses in [
        format!("watch -{}", "a".repeat(60 * 1024)),
        format!("watch x{}", "=".repeat(60 * 1024)),
        format!("ssh h '{}'", "= ".repeat(600)),
        format!("ssh h '{}'", "= ".repeat(30 * 1024)),
        format!("env -z {}", "-Sa ".repeat(15 * 1024)),
    ] {
        assert_eq!(outcome(&judge, &command(&guesses)), Outcome::Asked, "{guesses:.30}");
        for plain in ["sudo rm -rf /x", "sh -c 'rm -rf /x'", "find . -exec rm -rf {} +"] {
            let case = command(&format!("{guesses}; {plain}"));
            assert_eq!(outcome(&judge, &case), Outcome::Denied, "{guesses:.30} {plain}");
        }
        let case = command(&format!("{guesses}; rm -rf /x"));
        let Verdict::Ask(question) = asks.judge(&case) else { panic!("{guesses:.30}") };
        assert!(question.reason.contains("asks about it"), "{guesses:.30}: {question:?}");
        let configured = Some(rule(RuleEffect::Allow, "hooks", 1));
        let case = JudgedCall { configured, ..case };
        assert_eq!(outcome(&judge, &case), Outcome::Denied, "{guesses:.30}");
    }
}

/// Long commands of which each runs the next, ahead of one that is denied, in a text of their own and outside.
#[test]
fn a_long_chain_hides_no_command_that_is_written_out() {
    let judge = rules(PermissionMode::Auto, &[], &[], &["bash:rm -rf *"]);
    for runner in ["env ", "xargs "] {
        for words in ["a".repeat(60 * 1024), "a ".repeat(20 * 1024)] {
            let chain = format!("{}true {words}", runner.repeat(15));
            for text in [
                format!("bash -c '{chain}; rm -rf /x'"),
                format!("{chain}; bash -c 'rm -rf /x'"),
                format!("{chain}; xargs rm -rf /x"),
                format!("{chain}; find . -exec rm -rf {{}} +"),
            ] {
                assert_eq!(outcome(&judge, &command(&text)), Outcome::Denied, "{text:.40}");
            }
        }
    }
}

/// What agentd gives a shell to read is nothing, or texts that are judged one by one.
#[test]
fn a_shell_alone_reads_what_agentd_gives_it() {
    check(&[(
        "bash:touch b",
        &[
            "echo 'touch b' | bash",
            "bash < f",
            "f() { sh; }; cat x | f",
            "cat x | (sh)",
            "{ sh; } < f",
            "true; sh",
            "cat x | bash -c sh",
        ],
        &["bash", "sh -i", "nohup bash", "env sh"],
    )]);
}
