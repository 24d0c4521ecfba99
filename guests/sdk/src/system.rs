//! What the standard library asks of a system, answered from the imports of `wit/`.
//!
//! A libc on WASI's first preview needs an adapter in the component, which imports
//! interfaces of files, terminals and streams that every call pays for before it
//! begins. But libc names each of its imports by a symbol, and who defines the
//! symbol is asked instead. So a guest has no files and no environment because
//! there is nothing that could give it any; clocks, sleep and what it prints work.
//! A libc on the second preview does not ask for these symbols, and uses WASI.
//! They are exports of the guest's module, though nobody calls them from outside.

#![allow(unsafe_code)]

use crate::bindings::bosh::cpi::{clock, log, random};
use std::slice;
use std::sync::OnceLock;

/// An error number of WASI, or none.
type Errno = i32;

const SUCCESS: Errno = 0;
/// There is no such descriptor.
const BADF: Errno = 8;
const IO: Errno = 29;
const NOTSUP: Errno = 58;

const STDIN: i32 = 0;
const STDERR: i32 = 2;

const REALTIME: i32 = 0;
const MONOTONIC: i32 = 1;
const NS_PER_MS: u64 = 1_000_000;

const PRINTED: usize = 64 * 1024;

/// Defines functions of `wasi_snapshot_preview1` under libc's names for them.
macro_rules! system {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        // SAFETY: libc's own name for its import, which nothing else defines.
        #[unsafe(export_name = concat!("__imported_wasi_snapshot_preview1_", stringify!($name)))]
        extern "C" fn $name($($argument: $type),*) -> Errno $body
    )*};
}

/// The same for what works on descriptors that no guest has.
macro_rules! no_descriptor {
    ($($name:ident($($type:ty),*))*) => {$(
        // SAFETY: as above.
        #[unsafe(export_name = concat!("__imported_wasi_snapshot_preview1_", stringify!($name)))]
        extern "C" fn $name($(_: $type),*) -> Errno {
            BADF
        }
    )*};
}

/// A piece of memory that libc hands over.
#[repr(C)]
struct Piece {
    start: *const u8,
    length: usize,
}

#[repr(C)]
struct Descriptor {
    kind: u8,
    flags: u16,
    rights: u64,
    rights_inheriting: u64,
}

#[repr(C)]
struct Subscription {
    user_data: u64,
    /// Of a clock: 0.
    tag: u8,
    clock: Timeout,
}

#[repr(C)]
struct Timeout {
    clock: i32,
    length: u64,
    precision: u64,
    flags: u16,
}

/// The timeout is a point in time.
const ABSOLUTE: u16 = 1;

#[repr(C)]
struct Event {
    user_data: u64,
    error: u16,
    kind: u8,
    bytes: u64,
    flags: u16,
}

/// Writes through a pointer that libc hands over.
fn put<T>(place: *mut T, value: T) -> Errno {
    // SAFETY: libc passes places of its own that hold a `T`.
    unsafe { place.write(value) };
    SUCCESS
}

/// Finer than milliseconds, which names and seeds are made of.
fn now() -> u64 {
    static START: OnceLock<(u64, u64)> = OnceLock::new();
    let (now, then) = START.get_or_init(|| (clock::now_ms() * NS_PER_MS, clock::monotonic_ns()));
    now + (clock::monotonic_ns() - then)
}

/// What libc hands over to be read, which for nothing may be no place at all.
fn read<'a, T>(start: *const T, count: usize) -> &'a [T] {
    // SAFETY: libc passes memory of its own, as much as it says.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(start, count) } }
}

fn is_standard(descriptor: i32) -> bool {
    (STDIN..=STDERR).contains(&descriptor)
}

fn time(clock: i32) -> Option<u64> {
    match clock {
        REALTIME => Some(now()),
        MONOTONIC => Some(clock::monotonic_ns()),
        _ => None,
    }
}

system! {
    fn args_sizes_get(count: *mut usize, bytes: *mut usize) { put(count, 0) + put(bytes, 0) }
    fn args_get(_arguments: *mut *mut u8, _text: *mut u8) { SUCCESS }
    fn environ_sizes_get(count: *mut usize, bytes: *mut usize) { put(count, 0) + put(bytes, 0) }
    fn environ_get(_variables: *mut *mut u8, _text: *mut u8) { SUCCESS }

    fn clock_res_get(_clock: i32, resolution: *mut u64) { put(resolution, 1) }
    fn clock_time_get(clock: i32, _precision: u64, now: *mut u64) {
        time(clock).map_or(NOTSUP, |time| put(now, time))
    }
    // A sleep is all that can be waited for. It ends early when the call does.
    fn poll_oneoff(wanted: *const Subscription, events: *mut Event, count: usize, happened: *mut usize) {
        if count != 1 {
            return NOTSUP;
        }
        // SAFETY: libc passes as many as it says.
        let Subscription { user_data, tag: 0, clock: Timeout { clock, length, flags, .. } } = (unsafe { wanted.read() }) else {
            return NOTSUP;
        };
        let Some(now) = time(clock) else { return NOTSUP };
        let left = if flags & ABSOLUTE == 0 { length } else { length.saturating_sub(now) };
        let _ = clock::sleep(left.div_ceil(NS_PER_MS));
        put(events, Event { user_data, error: 0, kind: 0, bytes: 0, flags: 0 }) + put(happened, 1)
    }
    fn sched_yield() { SUCCESS }
    fn random_get(start: *mut u8, length: usize) {
        if length == 0 {
            return SUCCESS;
        }
        // SAFETY: libc passes memory of its own, as much as it says.
        for part in unsafe { slice::from_raw_parts_mut(start, length) }.chunks_mut(1024) {
            let bytes = random::bytes(part.len() as u32);
            if bytes.len() != part.len() {
                return IO;
            }
            part.copy_from_slice(&bytes);
        }
        SUCCESS
    }

    fn fd_write(descriptor: i32, pieces: *const Piece, count: usize, written: *mut usize) {
        if !(1..=STDERR).contains(&descriptor) {
            return BADF;
        }
        let stream = if descriptor == STDERR { log::Output::Stderr } else { log::Output::Stdout };
        let mut total = 0;
        for Piece { start, length } in read(pieces, count) {
            // As much at a time as a host call always may carry.
            read(*start, *length).chunks(PRINTED).for_each(|part| log::print(stream, part));
            total += length;
        }
        put(written, total)
    }
    fn fd_read(descriptor: i32, _pieces: *const Piece, _count: usize, length: *mut usize) {
        if descriptor == STDIN { put(length, 0) } else { BADF }
    }
    fn fd_fdstat_get(descriptor: i32, about: *mut Descriptor) {
        if !is_standard(descriptor) { return BADF; }
        put(about, Descriptor { kind: 0, flags: 0, rights: u64::MAX, rights_inheriting: 0 })
    }
    fn fd_close(descriptor: i32) {
        if is_standard(descriptor) { SUCCESS } else { BADF }
    }
}

no_descriptor! {
    fd_advise(i32, i64, i64, i32)
    fd_allocate(i32, i64, i64)
    fd_datasync(i32)
    fd_fdstat_set_flags(i32, i32)
    fd_fdstat_set_rights(i32, i64, i64)
    fd_filestat_get(i32, i32)
    fd_filestat_set_size(i32, i64)
    fd_filestat_set_times(i32, i64, i64, i32)
    fd_pread(i32, i32, i32, i64, i32)
    fd_prestat_dir_name(i32, i32, i32)
    fd_prestat_get(i32, i32)
    fd_pwrite(i32, i32, i32, i64, i32)
    fd_readdir(i32, i32, i32, i64, i32)
    fd_renumber(i32, i32)
    fd_seek(i32, i64, i32, i32)
    fd_sync(i32)
    fd_tell(i32, i32)
    path_create_directory(i32, i32, i32)
    path_filestat_get(i32, i32, i32, i32, i32)
    path_filestat_set_times(i32, i32, i32, i32, i64, i64, i32)
    path_link(i32, i32, i32, i32, i32, i32, i32)
    path_open(i32, i32, i32, i32, i32, i64, i64, i32, i32)
    path_readlink(i32, i32, i32, i32, i32, i32)
    path_remove_directory(i32, i32, i32)
    path_rename(i32, i32, i32, i32, i32, i32)
    path_symlink(i32, i32, i32, i32, i32)
    path_unlink_file(i32, i32, i32)
    sock_accept(i32, i32, i32)
    sock_recv(i32, i32, i32, i32, i32, i32)
    sock_send(i32, i32, i32, i32, i32)
    sock_shutdown(i32, i32)
}

/// As a panic ends a guest: there is no other end than a trap, which says nothing.
// SAFETY: as above.
#[unsafe(export_name = "__imported_wasi_snapshot_preview1_proc_exit")]
extern "C" fn proc_exit(code: i32) -> ! {
    log::log(log::Level::Error, &format!("called exit({code}) instead of answering"));
    std::process::abort()
}
