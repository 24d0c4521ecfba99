//! First step: reads the request from stdin.

use crate::call::CallError;
use crate::caller;
use crate::config::EarlySettings;
use crate::failure::{Failure, Who};
use crate::rpc::request::Request;
use crate::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// The bytes that are read at once.
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
    let (mut bytes, mut chunk, mut too_long) = (Vec::new(), vec![0; CHUNK], false);
    loop {
        let Some(count) = read_some(&mut chunk, deadline).map_err(|error| unreadable(&error))? else {
            let what = "waiting for the end of the request on stdin";
            return Err(of_request(Failure::limit("wall_seconds", settings.wall_seconds, what)));
        };
        // The rest of a request that is too long is read, too. Otherwise a caller that is still
        // writing would get EPIPE instead of a response.
        too_long |= bytes.len() + count > max;
        match count {
            0 if too_long => {
                return Err(of_request(Failure::limit("request_mib", settings.request_mib, "the request's size")));
            }
            0 => return Ok(bytes),
            _ if too_long => bytes.clear(),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Returns how many bytes were read, zero at the end of stdin, or `None` if the time is over.
fn read_some(chunk: &mut [u8], deadline: Instant) -> io::Result<Option<usize>> {
    let stdin = rustix::stdio::stdin();
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
        match rustix::io::read(stdin, &mut *chunk) {
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
