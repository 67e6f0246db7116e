//! Descriptors that ride on a byte of a socket. The only file of this crate with unsafe code.

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Most descriptors that may wait to be taken. Stops a peer from using up our table.
pub const WAITING_CAP: usize = 8;

/// Writes `bytes` with a descriptor attached to the first of them. Returns the number of bytes
/// written.
///
/// # Errors
/// Those of `sendmsg(2)`.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [descriptor.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let parts = [IoSlice::new(bytes)];
    Ok(sendmsg::<()>(socket.as_raw_fd(), &parts, &rights, MsgFlags::MSG_NOSIGNAL, None)?)
}

/// Reads into `buffer`; descriptors that came along are put into `waiting`, close-on-exec. Returns
/// how many bytes were read, 0 at the end of file.
///
/// # Errors
/// Those of `recvmsg(2)`; `InvalidData` when more than [`WAITING_CAP`] descriptors wait.
pub fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    waiting: &mut VecDeque<OwnedFd>,
) -> io::Result<usize> {
    receive_from(socket, buffer, waiting).map(|(length, _)| length)
}

/// Receives as above, with the sender's process ID where the socket reports it (`SO_PASSCRED`). The
/// kernel never mixes bytes of two writers in one read.
///
/// # Errors
/// Those of [`receive`].
pub fn receive_from(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    waiting: &mut VecDeque<OwnedFd>,
) -> io::Result<(usize, Option<i32>)> {
    let mut space = cmsg_space!([RawFd; WAITING_CAP], UnixCredentials);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut writer = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmCredentials(credentials) = control {
            writer = Some(credentials.pid());
        } else if let ControlMessageOwned::ScmRights(descriptors) = control {
            for descriptor in descriptors {
                // SAFETY: the kernel has just made this descriptor for us in `recvmsg`, nothing
                // else in the process knows its number.
                #[allow(unsafe_code)]
                waiting.push_back(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
    }
    if waiting.len() > WAITING_CAP {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too many descriptors"));
    }
    Ok((message.bytes, writer))
}
