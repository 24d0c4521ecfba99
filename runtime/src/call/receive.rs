//! First step: reads the request from stdin.

use crate::call::CallError;
use crate::caller;
use crate::config::EarlySettings;
use crate::failure::{Failure, Who};
use crate::rpc::request::Request;
use crate::signals;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// The room for the first bytes of a request. More is reserved when it is full.
const CHUNK: usize = 64 * 1024;

/// Reads and parses the request. Stdin is always read to its end, because the Director writes
/// its whole request before it reads.
pub fn receive(settings: &EarlySettings) -> Result<Request, CallError> {
    let bytes = read(settings);
    signals::record_from_now_on();
    caller::watch_stdout();
    Ok(Request::parse(&bytes?, settings.api_version)?)
}

fn read(settings: &EarlySettings) -> Result<Vec<u8>, Failure> {
    let deadline = Instant::now() + Duration::from_secs(settings.wall_seconds);
    let max = usize::try_from(settings.request_mib << 20).unwrap_or(usize::MAX);
    let (mut bytes, mut too_long) = (Vec::new(), false);
    loop {
        let Some(count) = read_some(&mut bytes, deadline).map_err(|error| unreadable(&error))? else {
            let what = "waiting for the end of the request on stdin";
            return Err(of_request(Failure::limit("wall_seconds", settings.wall_seconds, what)));
        };
        // The rest of a request that is too long is read, too. Otherwise a caller that is still
        // writing would get EPIPE instead of a response.
        too_long |= bytes.len() > max;
        match count {
            0 if too_long => {
                return Err(of_request(Failure::limit("request_mib", settings.request_mib, "the request's size")));
            }
            0 => return Ok(bytes),
            _ if too_long => bytes.clear(),
            _ => {}
        }
    }
}

/// Appends what stdin has now. Returns how many bytes these are, zero at the end of stdin, or `None` if the
/// time is over. The room for them is not filled with zeros first: that would touch 16 pages, and most
/// requests need one.
fn read_some(bytes: &mut Vec<u8>, deadline: Instant) -> io::Result<Option<usize>> {
    let stdin = rustix::stdio::stdin();
    if bytes.len() == bytes.capacity() {
        bytes.reserve(CHUNK);
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(stdin, spare_capacity(bytes)) {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn of_request(failure: Failure) -> Failure {
    Failure { who: Who::Request, ..failure }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::request(format!("stdin cannot be read: {error}"))
}
