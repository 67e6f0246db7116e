//! Two ends of a real socket pair.

use ipc::codec::encode;
use ipc::{ChannelError, FrameError, Hello, HelloError, Receiver, Sender, connect, frames};
use protocol::Link;
use protocol::ids::Generation;
use protocol::tool::{FromCall, FromTool, OutputStream, ToTool, ToolLink};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// The tool wire from the other side.
enum Mirror {}

impl Link for Mirror {
    type To = FromTool;
    type From = ToTool;
    const NAME: &'static str = "tool, mirrored";
    const MESSAGE_CAP: usize = ToolLink::MESSAGE_CAP;
}

type Near = (Receiver<ToTool>, Sender<FromTool>);
type Far = (Receiver<FromTool>, Sender<ToTool>);

fn pair() -> (Near, Far) {
    let (near, far) = UnixStream::pair().unwrap();
    let far = thread::spawn(|| connect::<Mirror>(far).unwrap());
    (connect::<ToolLink>(near).unwrap(), far.join().unwrap())
}

/// One end, and the socket of a peer that has said Hello.
fn with_raw_peer() -> (Near, UnixStream) {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(&Hello::own().to_bytes()).unwrap();
    let near = connect::<ToolLink>(near).unwrap();
    far.read_exact(&mut [0; ipc::HELLO_BYTES]).unwrap();
    (near, far)
}

fn output(text: &str) -> FromTool {
    FromTool::Call(FromCall::Output { stream: OutputStream::Out, text: text.to_owned() })
}

#[test]
fn words_go_both_ways() {
    let ((mut rx, tx), (mut far_rx, far_tx)) = pair();
    far_tx.send(&ToTool::Cancel).unwrap();
    assert_eq!(rx.recv().unwrap(), ToTool::Cancel);
    tx.send_about(9, &output("hi")).unwrap();
    let received = far_rx.recv_about().unwrap();
    assert_eq!((received.correlation, received.word), (9, output("hi")));
}

#[test]
fn a_word_of_many_frames_goes_while_the_other_side_reads() {
    let ((_, tx), (mut far_rx, _)) = pair();
    let long = output(&"x".repeat(5 << 20));
    let sent = long.clone();
    let sender = thread::spawn(move || tx.send(&sent).unwrap());
    assert_eq!(far_rx.recv().unwrap(), long);
    sender.join().unwrap();
}

#[test]
fn words_of_several_threads_do_not_mix() {
    let ((_, tx), (mut far_rx, _)) = pair();
    let senders: Vec<_> = (0..4)
        .map(|number| {
            let tx = tx.clone();
            thread::spawn(move || {
                let word = output(&number.to_string().repeat(300_000));
                (0..10).for_each(|_| tx.send(&word).unwrap());
            })
        })
        .collect();
    for _ in 0..40 {
        let FromTool::Call(FromCall::Output { text, .. }) = far_rx.recv().unwrap() else {
            panic!("another word")
        };
        assert_eq!(text.len(), 300_000);
        assert!(text.bytes().all(|byte| byte == text.as_bytes()[0]));
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}

#[test]
fn descriptors_ride_behind_their_word_in_order() {
    let ((mut rx, _), (_, far_tx)) = pair();
    far_tx.send(&ToTool::Cancel).unwrap();
    let ends: Vec<_> = (0..3)
        .map(|_| {
            let (here, there) = UnixStream::pair().unwrap();
            far_tx.send_fd(there.as_fd()).unwrap();
            here
        })
        .collect();
    far_tx.send(&ToTool::Cancel).unwrap();
    assert_eq!(rx.recv().unwrap(), ToTool::Cancel);
    for (mut here, mark) in ends.into_iter().zip(*b"abc") {
        let mut there = UnixStream::from(rx.recv_fd().unwrap());
        here.write_all(&[mark]).unwrap();
        let mut got = [0];
        there.read_exact(&mut got).unwrap();
        assert_eq!(got, [mark]);
    }
    assert_eq!(rx.recv().unwrap(), ToTool::Cancel);
}

#[test]
fn a_word_where_a_descriptor_belongs_is_out_of_turn() {
    let ((mut rx, _), (_, far_tx)) = pair();
    far_tx.send(&ToTool::Cancel).unwrap();
    assert!(matches!(rx.recv_fd(), Err(ChannelError::OutOfTurn)));
}

#[test]
fn a_descriptor_frame_that_brings_none_is_out_of_turn() {
    let ((mut rx, _), mut peer) = with_raw_peer();
    peer.write_all(&ipc::descriptor_frame(Generation(1))).unwrap();
    assert!(matches!(rx.recv_fd(), Err(ChannelError::OutOfTurn)));
}

#[test]
fn a_peer_that_goes_is_told_from_one_that_is_cut_off() {
    let ((mut rx, _), peer) = with_raw_peer();
    drop(peer);
    assert!(matches!(rx.recv(), Err(ChannelError::Closed)));
    let ((mut rx, _), mut peer) = with_raw_peer();
    let bytes = frames(Generation(1), 0, &encode(&ToTool::Cancel).unwrap());
    peer.write_all(&bytes[..bytes.len() - 1]).unwrap();
    drop(peer);
    assert!(matches!(rx.recv(), Err(ChannelError::Cut)));
}

#[test]
fn what_a_peer_sends_byte_by_byte_is_read() {
    let ((mut rx, _), mut peer) = with_raw_peer();
    let word =
        ToTool::Go(protocol::tool::RunnerJob::Probe { tool: "edit".into(), input: "{}".into() });
    let bytes = frames(Generation(3), 4, &encode(&word).unwrap());
    let writer = thread::spawn(move || {
        bytes.chunks(1).for_each(|byte| peer.write_all(byte).unwrap());
        peer
    });
    let received = rx.recv_about().unwrap();
    assert_eq!((received.generation, received.correlation), (Generation(3), 4));
    assert_eq!(received.word, word);
    drop(writer.join().unwrap());
}

#[test]
fn answers_carry_the_generation_of_the_word_received_last() {
    let ((mut rx, tx), mut peer) = with_raw_peer();
    peer.write_all(&frames(Generation(5), 0, &encode(&ToTool::Cancel).unwrap())).unwrap();
    rx.recv().unwrap();
    tx.send(&output("x")).unwrap();
    let mut header = [0; 8];
    peer.read_exact(&mut header).unwrap();
    assert_eq!(header[4..], 5_u32.to_le_bytes());
}

#[test]
fn rubbish_ends_the_channel_by_name() {
    let ((mut rx, _), mut peer) = with_raw_peer();
    peer.write_all(&frames(Generation(1), 0, b"\xfe\xfe\xfe")).unwrap();
    assert!(matches!(rx.recv(), Err(ChannelError::Codec(_))));
    let ((mut rx, _), mut peer) = with_raw_peer();
    peer.write_all(&[0xff; 64]).unwrap();
    assert!(matches!(rx.recv(), Err(ChannelError::Frame(FrameError::OverLong { .. }))));
}

#[test]
fn a_word_over_the_cap_is_not_sent_and_the_next_one_is() {
    let ((_, tx), (mut far_rx, _)) = pair();
    let long = output(&"x".repeat(ToolLink::MESSAGE_CAP));
    assert!(matches!(tx.send(&long), Err(ChannelError::TooLong { wire: "tool", .. })));
    tx.send(&output("short")).unwrap();
    assert_eq!(far_rx.recv().unwrap(), output("short"));
}

#[test]
fn a_peer_of_another_build_is_refused_with_both_names() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let other = Hello { build: "0.0.1-other".to_owned(), ..Hello::own() };
    far.write_all(&other.to_bytes()).unwrap();
    let error = connect::<ToolLink>(near).unwrap_err();
    assert!(matches!(error, ChannelError::Hello(HelloError::OtherBuild { .. })));
    let said = error.to_string();
    assert!(said.contains("0.0.1-other") && said.contains(protocol::BUILD_ID), "{said}");
}

#[test]
fn a_peer_that_is_none_of_ours_is_refused() {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(&[b'G'; ipc::HELLO_BYTES]).unwrap();
    let refused = connect::<ToolLink>(near);
    assert!(matches!(refused, Err(ChannelError::Hello(HelloError::Foreign))));
}
