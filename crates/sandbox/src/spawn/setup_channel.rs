//! Channel for messages and descriptors between the three processes of a cage. They run the same
//! program and trust each other until the command's program starts.

use crate::error::{CageError, CageStep};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum length of a message: a command line and an environment, which the kernel limits to about
/// 6 MiB.
const LONGEST: usize = 8 << 20;
/// Maximum number of descriptors in one message.
const MOST_DESCRIPTORS: usize = 10;

const READY: u8 = b'R';
const FAILED: u8 = b'F';
/// Tags of the parts of a `READY` message.
const LOSS: u8 = b'L';
const WITHOUT_OVERLAY: u8 = b'P';

/// One end of the channel between the runner and a process that it forked.
#[derive(Debug)]
pub(crate) struct SetupChannel(UnixStream);

/// The message of a process that has finished its setup.
#[derive(Debug, Default)]
pub(crate) struct ReadyMsg {
    pub descriptors: Vec<OwnedFd>,
    /// Protections of the tier that this host refused, in plain words.
    pub losses: Vec<String>,
    /// Paths that are shown without their overlay, and the reason.
    pub without_overlay: Vec<(PathBuf, Errno)>,
}

impl SetupChannel {
    /// Creates both ends.
    ///
    /// # Errors
    /// `CageStep::Handover`.
    pub(crate) fn pair() -> Result<(Self, Self), CageError> {
        let (one, other) = UnixStream::pair().map_err(broken)?;
        Ok((Self(one), Self(other)))
    }

    /// A second handle on this end.
    ///
    /// # Errors
    /// `CageStep::Handover`.
    pub(crate) fn try_clone(&self) -> Result<Self, CageError> {
        self.0.try_clone().map(Self).map_err(broken)
    }

    /// Sets how long each receive may wait, for all holders of this end.
    ///
    /// # Errors
    /// `CageStep::Handover`.
    pub(crate) fn set_timeout(&self, patience: Duration) -> Result<(), CageError> {
        self.0.set_read_timeout(Some(patience)).map_err(broken)
    }

    /// Closes the channel for all holders of this end.
    pub(crate) fn shut_down(self) {
        // It only fails if the other end is already gone.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Reports that the setup has succeeded so far.
    pub(crate) fn send_ready(
        &self,
        descriptors: &[BorrowedFd<'_>],
        losses: &[String],
    ) -> Result<(), CageError> {
        self.send_root_ready(descriptors, losses, &[])
    }

    /// Reports that the new root is complete, and which of its paths are shown without their
    /// overlay.
    pub(crate) fn send_root_ready(
        &self,
        descriptors: &[BorrowedFd<'_>],
        losses: &[String],
        without_overlay: &[(PathBuf, Errno)],
    ) -> Result<(), CageError> {
        let losses = losses.iter().map(|loss| [&[LOSS], loss.as_bytes()].concat());
        let without_overlay = without_overlay.iter().map(|(place, errno)| {
            let errno = (*errno as i32).to_le_bytes();
            [&[WITHOUT_OVERLAY], &errno[..], place.as_os_str().as_bytes()].concat()
        });
        let parts: Vec<Vec<u8>> = losses.chain(without_overlay).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        self.send(READY, &parts, descriptors)
    }

    /// Reports an error.
    pub(crate) fn send_error(&self, error: &CageError) -> Result<(), CageError> {
        let step = error.step as u8;
        let errno = error.errno().to_le_bytes();
        let parts: [&[u8]; 4] = [&[step], &errno, error.reason.as_bytes(), error.hint.as_bytes()];
        self.send(FAILED, &parts, &[])
    }

    /// Waits until the other end reports that it is ready.
    ///
    /// # Errors
    /// The error that the other end reports, or `CageStep::Lost` if it ended without a message.
    pub(crate) fn await_ready(&self) -> Result<ReadyMsg, CageError> {
        match self.receive_ready()? {
            Some(ready) => Ok(ready),
            None => {
                Err(CageError::new(CageStep::Lost, "a process of the cage ended without a message"))
            }
        }
    }

    /// Waits for a message; `None` if the other end closed the channel.
    ///
    /// # Errors
    /// The error that the other end reports.
    pub(crate) fn receive_ready(&self) -> Result<Option<ReadyMsg>, CageError> {
        let Some((tag, parts, descriptors)) = self.receive()? else {
            return Ok(None);
        };
        if tag == READY {
            let mut ready = ReadyMsg { descriptors, ..ReadyMsg::default() };
            for part in &parts {
                match part.as_slice() {
                    [LOSS, loss @ ..] => {
                        ready.losses.push(String::from_utf8_lossy(loss).into_owned());
                    }
                    [WITHOUT_OVERLAY, a, b, c, d, place @ ..] => ready.without_overlay.push((
                        OsStr::from_bytes(place).into(),
                        Errno::from_raw(i32::from_le_bytes([*a, *b, *c, *d])),
                    )),
                    _ => return Err(garbled()),
                }
            }
            return Ok(Some(ready));
        }
        Err(reported(&parts))
    }

    /// Sends a list of byte strings.
    pub(crate) fn send_parts(&self, parts: &[&[u8]]) -> Result<(), CageError> {
        self.send(READY, parts, &[])
    }

    /// Receives such a list; `None` if the other end is gone.
    pub(crate) fn receive_parts(&self) -> Result<Option<Vec<Vec<u8>>>, CageError> {
        Ok(self.receive()?.map(|(_, parts, _)| parts))
    }

    /// Sends such a list, and the file that becomes a program's input.
    pub(crate) fn send_with(
        &self,
        parts: &[&[u8]],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), CageError> {
        self.send(READY, parts, file.as_slice())
    }

    /// Receives both; `None` if the other end is gone.
    #[allow(clippy::type_complexity, reason = "taken apart by its caller at once")]
    pub(crate) fn receive_with(
        &self,
    ) -> Result<Option<(Vec<Vec<u8>>, Option<OwnedFd>)>, CageError> {
        Ok(self.receive()?.map(|(_, parts, mut files)| (parts, files.pop())))
    }

    fn send(
        &self,
        tag: u8,
        parts: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), CageError> {
        let mut body = vec![tag];
        for part in parts {
            body.extend(length(part.len())?.to_le_bytes());
            body.extend(*part);
        }
        let prefix = length(body.len())?.to_le_bytes();
        let raw: Vec<RawFd> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
        // The descriptors travel with the first byte. Prefix and message are sent in one call if
        // they fit, since each separate write would wake the other end once more.
        let sent = sendmsg::<()>(
            self.0.as_raw_fd(),
            &[IoSlice::new(&prefix), IoSlice::new(&body)],
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )
        .map_err(|error| broken(error.into()))?;
        let rest = sent.checked_sub(prefix.len()).and_then(|sent| body.get(sent..));
        (&self.0).write_all(rest.ok_or_else(garbled)?).map_err(broken)
    }

    #[allow(clippy::type_complexity, reason = "taken apart by its two callers at once")]
    fn receive(&self) -> Result<Option<(u8, Vec<Vec<u8>>, Vec<OwnedFd>)>, CageError> {
        let mut prefix = [0; 4];
        let mut space = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
        let mut into = [IoSliceMut::new(&mut prefix)];
        let message = loop {
            match recvmsg::<()>(
                self.0.as_raw_fd(),
                &mut into,
                Some(&mut space),
                MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_WAITALL,
            ) {
                Err(nix::errno::Errno::EINTR) => {}
                // A process that was killed with unread messages resets the connection: it is gone.
                Err(nix::errno::Errno::ECONNRESET) => return Ok(None),
                other => break other.map_err(|error| broken(error.into()))?,
            }
        };
        let mut descriptors = Vec::new();
        for control in message.cmsgs().map_err(|error| broken(error.into()))? {
            if let ControlMessageOwned::ScmRights(raw) = control {
                descriptors.extend(raw.into_iter().map(take_fd));
            }
        }
        match message.bytes {
            0 => return Ok(None),
            4 => {}
            _ => return Err(garbled()),
        }
        let size = u32::from_le_bytes(prefix) as usize;
        if size == 0 || size > LONGEST {
            return Err(garbled());
        }
        let mut body = vec![0; size];
        (&self.0).read_exact(&mut body).map_err(broken)?;
        let (tag, mut rest) = body.split_first().ok_or_else(garbled)?;
        let mut parts = Vec::new();
        while let Some((prefix, tail)) = rest.split_first_chunk::<4>() {
            let size = u32::from_le_bytes(*prefix) as usize;
            let (part, tail) = tail.split_at_checked(size).ok_or_else(garbled)?;
            parts.push(part.to_vec());
            rest = tail;
        }
        Ok(Some((*tag, parts, descriptors)))
    }
}

impl From<OwnedFd> for SetupChannel {
    fn from(end: OwnedFd) -> Self {
        Self(UnixStream::from(end))
    }
}

impl AsFd for SetupChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes ownership of a descriptor that came with a message.
fn take_fd(raw: RawFd) -> OwnedFd {
    // SAFETY: the kernel put it into this process's table with the message; it has no other owner.
    #[allow(unsafe_code)]
    unsafe {
        OwnedFd::from_raw_fd(raw)
    }
}

fn length(size: usize) -> Result<u32, CageError> {
    if size > LONGEST {
        return Err(CageError::new(
            CageStep::Program,
            format!("its arguments and environment take {size} bytes; {LONGEST} is the most"),
        ));
    }
    u32::try_from(size).map_err(|_| garbled())
}

/// Decodes an error that another process of the cage reported.
fn reported(parts: &[Vec<u8>]) -> CageError {
    let [step, errno, reason, hint] = parts else {
        return garbled();
    };
    let (Some(step), Ok(errno)) = (
        step.first().and_then(|at| CageStep::ALL.get(usize::from(*at))),
        <[u8; 4]>::try_from(errno.as_slice()),
    ) else {
        return garbled();
    };
    let errno = i32::from_le_bytes(errno);
    CageError {
        step: *step,
        reason: String::from_utf8_lossy(reason).into_owned(),
        hint: String::from_utf8_lossy(hint).into_owned(),
        source: (errno != 0).then(|| io::Error::from_raw_os_error(errno)),
    }
}

/// Maps an I/O error: the process at the other end is gone, or the kernel refused the call.
fn broken(error: io::Error) -> CageError {
    let gone =
        [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof];
    let step = if gone.contains(&error.kind()) { CageStep::Lost } else { CageStep::Handover };
    CageError::os(step, "the channel to a process of the cage", error)
}

fn garbled() -> CageError {
    CageError::new(CageStep::Handover, "a process of the cage sent an invalid message")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn descriptors_and_losses_arrive() {
        let (here, there) = SetupChannel::pair().unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        there.send_ready(&[write.as_fd()], &["one".into()]).unwrap();
        drop(write);
        let ready = here.await_ready().unwrap();
        assert_eq!(ready.losses, ["one"]);
        let mut pipe = std::fs::File::from(ready.descriptors.into_iter().next().unwrap());
        pipe.write_all(b"through").unwrap();
        drop(pipe);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn every_step_survives_the_line() {
        let (here, there) = SetupChannel::pair().unwrap();
        for step in CageStep::ALL {
            let error = CageError::os(step, "trying", io::Error::from_raw_os_error(libc::EPERM));
            there.send_error(&error).unwrap();
            let told = here.await_ready().unwrap_err();
            assert_eq!(told.step, step);
            assert_eq!(told.to_string(), error.to_string());
            assert_eq!(told.errno(), libc::EPERM);
        }
    }

    #[test]
    fn nonsense_and_silence_are_errors_not_panics() {
        for body in [&b"\x00\x00\x00\x00"[..], b"\xff\xff\xff\xff", b"\x05\0\0\0F\x09\0\0\0"] {
            let (here, mut there) = {
                let (here, there) = UnixStream::pair().unwrap();
                (SetupChannel(here), there)
            };
            there.write_all(body).unwrap();
            drop(there);
            assert!(here.await_ready().is_err());
        }
        let (here, there) = SetupChannel::pair().unwrap();
        drop(there);
        assert!(here.receive_ready().unwrap().is_none());
    }
}
