//! Classic BPF as far as seccomp uses it, so that a program for any machine can be run anywhere.

use seccompiler::sock_filter;

/// `struct seccomp_data`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub(super) nr: u32,
    pub(super) arch: u32,
    pub(super) args: [u64; 6],
}

impl Data {
    #[allow(clippy::cast_possible_truncation)]
    fn word(&self, at: u32) -> u32 {
        match at {
            0 => self.nr,
            4 => self.arch,
            // The instruction pointer.
            8 | 12 => 0,
            16..64 if at.is_multiple_of(4) => {
                let argument = self.args[(at as usize - 16) / 8];
                if at.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
            }
            _ => panic!("load at {at}"),
        }
    }
}

/// Runs the program and returns its answer; refuses a program that the kernel's checker would
/// refuse.
pub(super) fn run(program: &[sock_filter], data: &Data) -> u32 {
    assert!(program.len() <= 4096, "{} instructions", program.len());
    let mut accumulator = 0_u32;
    let mut at = 0;
    loop {
        let step = program.get(at).expect("the program ends in an answer");
        at += 1;
        let mut branch = |taken: bool| at += usize::from(if taken { step.jt } else { step.jf });
        match step.code {
            // Load a word; and a constant.
            0x20 => accumulator = data.word(step.k),
            0x54 => accumulator &= step.k,
            // Jump; jump if equal, above, not below, any bit.
            0x05 => at += step.k as usize,
            0x15 => branch(accumulator == step.k),
            0x25 => branch(accumulator > step.k),
            0x35 => branch(accumulator >= step.k),
            0x45 => branch(accumulator & step.k != 0),
            0x06 => return step.k,
            code => panic!("instruction {code:#x} at {}", at - 1),
        }
    }
}

#[test]
fn it_agrees_with_a_program_worked_out_by_hand() {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let program = [
        step(0x20, 0, 0, 20),
        step(0x54, 0, 0, 0xF0),
        step(0x15, 1, 0, 0x30),
        step(0x06, 0, 0, 1),
        step(0x06, 0, 0, 2),
    ];
    let data = |argument| Data { nr: 0, arch: 0, args: [argument, 0, 0, 0, 0, 0] };
    assert_eq!(run(&program, &data(0x35_0000_0000)), 2);
    assert_eq!(run(&program, &data(0x45_0000_0030)), 1);
}
