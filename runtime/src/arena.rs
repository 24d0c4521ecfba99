//! Memory for a process that lives as long as one call.
//!
//! Most of what a call allocates is small, made while it starts, and kept until it
//! ends. So the first thread takes such pieces one after the other from an arena
//! and gives none back but the last; large ones, those of other threads, and
//! whatever comes when the arena is full are the C library's as ever. It lies where
//! the kernel likes, between pages that nobody can touch.

#![expect(unsafe_code, reason = "an allocator hands out memory, and no type can tell whose it is")]

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A call that asks no cloud fits in.
const BYTES: usize = 1 << 20;

/// What a call takes of it, roughly.
const CALL: usize = 352 << 10;

const PAGE: usize = 4096;

/// Larger pieces are few, and worth having back.
const LARGEST: usize = 16 << 10;

/// The `NEXT` of a thread that has no arena: behind every end, and the end of nothing.
const NONE: usize = BYTES + 1;

/// Where it begins, once there is one; then for ever.
static BASE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Where the free rest begins.
    static NEXT: Cell<usize> = const { Cell::new(NONE) };
}

pub struct Arena;

impl Arena {
    /// The calling thread takes from the arena from now on, if it is the first to
    /// ask. Without memory for one all goes on as it was.
    pub fn begin() {
        let Some(base) = map() else { return };
        if BASE.compare_exchange(ptr::null_mut(), base, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            NEXT.set(0);
        }
    }

    /// The kernel makes the pages that a call of a guest takes in one go, which costs
    /// it less than one after the other. Where it does not know how, it need not.
    pub fn expect_call() {
        let from = NEXT.get().next_multiple_of(PAGE);
        if from + CALL <= BYTES {
            // SAFETY: it lies within the arena, and what is in it stays.
            let _ = unsafe { madvise(Arena::base().add(from).cast(), CALL, Advice::LinuxPopulateWrite) };
        }
    }

    fn base() -> *mut u8 {
        BASE.load(Ordering::Relaxed)
    }

    fn take(layout: Layout) -> Option<*mut u8> {
        let start = NEXT.get().next_multiple_of(layout.align());
        let end = start.checked_add(layout.size())?;
        // Where a page may begin is all that is known of where the arena does.
        if layout.size() > LARGEST || layout.align() > PAGE || end > BYTES {
            return None;
        }
        NEXT.set(end);
        // SAFETY: this thread has the arena, and `start` is at most `BYTES`.
        Some(unsafe { Arena::base().add(start) })
    }

    /// Where in the arena a piece begins, if it is one of it.
    fn offset(piece: *mut u8) -> Option<usize> {
        let base = Arena::base();
        let offset = piece.addr().wrapping_sub(base.addr());
        (!base.is_null() && offset < BYTES).then_some(offset)
    }
}

/// Room for an arena, with a page before and behind it that nobody can touch.
fn map() -> Option<*mut u8> {
    let open = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: memory that is new belongs to nobody.
    unsafe {
        let all = mmap_anonymous(ptr::null_mut(), BYTES + 2 * PAGE, ProtFlags::empty(), MapFlags::PRIVATE).ok()?;
        let base = all.byte_add(PAGE);
        mprotect(base, BYTES, open).ok()?;
        Some(base.cast())
    }
}

// SAFETY: a piece of the arena is aligned, ends before the next one begins, and is
// handed out again only after it was given back; the rest is `System`'s own.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        Arena::take(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Arena::take(layout) {
            Some(piece) => {
                // What was given back has been written to.
                // SAFETY: it is as long as the layout says.
                unsafe { piece.write_bytes(0, layout.size()) };
                piece
            }
            // SAFETY: the caller's promise is passed on.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match Arena::offset(piece) {
            Some(offset) if offset + layout.size() == NEXT.get() => NEXT.set(offset),
            Some(_) => {}
            // SAFETY: it came from there.
            None => unsafe { System.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = Arena::offset(piece) else {
            // SAFETY: it came from there.
            return unsafe { System.realloc(piece, layout, size) };
        };
        let is_last = offset + layout.size() == NEXT.get();
        if is_last && size <= LARGEST && offset + size <= BYTES {
            NEXT.set(offset + size);
            return piece;
        }
        if size <= layout.size() {
            return piece;
        }
        // SAFETY: the caller promises a size that makes a layout; both pieces are at
        // least as long as the old one, and apart.
        unsafe {
            let grown = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !grown.is_null() {
                grown.copy_from_nonoverlapping(piece, layout.size());
                self.dealloc(piece, layout);
            }
            grown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A piece, and the byte that fills it.
    struct Piece {
        start: *mut u8,
        layout: Layout,
        fill: u8,
    }

    impl Piece {
        fn filled(start: *mut u8, layout: Layout, fill: u8) -> Piece {
            assert!(!start.is_null() && start.addr().is_multiple_of(layout.align()));
            // SAFETY: it was just handed out.
            unsafe { start.write_bytes(fill, layout.size()) };
            Piece { start, layout, fill }
        }

        fn holds(&self, size: usize) -> bool {
            // SAFETY: it is ours, and initialised by `filled`.
            unsafe { std::slice::from_raw_parts(self.start, size) }.iter().all(|byte| *byte == self.fill)
        }
    }

    /// What is done: take, take zeroed, give back one of those there are, resize one.
    fn steps() -> impl Strategy<Value = Vec<(u8, usize, usize, u32)>> {
        let size = prop_oneof![1..200_usize, 1..LARGEST + 2, 1..8_usize];
        let align = prop_oneof![8 => 0..7_u32, 1 => 7..15_u32];
        proptest::collection::vec((0..4_u8, size, any::<usize>(), align), 1..400)
    }

    #[test]
    fn pieces_keep_what_is_written_to_them() {
        Arena::begin();
        let mut runner = proptest::test_runner::TestRunner::default();
        let inside = Cell::new(0);
        let done = runner.run(&steps(), |steps| {
            // Nothing is left of the case before.
            NEXT.set(0);
            let mut pieces: Vec<Piece> = Vec::new();
            for (fill, (what, size, which, align)) in (0_u8..=255).cycle().zip(steps) {
                let layout = Layout::from_size_align(size, 1 << align).unwrap();
                let at = which.checked_rem(pieces.len());
                match (what, at) {
                    (0, _) | (_, None) => pieces.push(Piece::filled(unsafe { Arena.alloc(layout) }, layout, fill)),
                    (1, _) => {
                        let piece = Piece { start: unsafe { Arena.alloc_zeroed(layout) }, layout, fill: 0 };
                        prop_assert!(piece.holds(size));
                        pieces.push(Piece::filled(piece.start, layout, fill));
                    }
                    (2, Some(at)) => {
                        let piece = pieces.swap_remove(at);
                        prop_assert!(piece.holds(piece.layout.size()));
                        unsafe { Arena.dealloc(piece.start, piece.layout) };
                    }
                    (_, Some(at)) => {
                        let piece = pieces.swap_remove(at);
                        let start = unsafe { Arena.realloc(piece.start, piece.layout, size) };
                        let layout = Layout::from_size_align(size, piece.layout.align()).unwrap();
                        let moved = Piece { start, ..piece };
                        prop_assert!(moved.holds(size.min(piece.layout.size())));
                        pieces.push(Piece::filled(start, layout, fill));
                    }
                }
                inside.set(
                    inside.get() + usize::from(pieces.last().is_some_and(|piece| Arena::offset(piece.start).is_some())),
                );
            }
            prop_assert!(pieces.iter().all(|piece| piece.holds(piece.layout.size())));
            pieces.iter().for_each(|piece| unsafe { Arena.dealloc(piece.start, piece.layout) });
            Ok(())
        });
        done.unwrap();
        assert!(inside.get() > 100, "{} pieces came from the arena", inside.get());
    }

    #[test]
    fn a_thread_that_did_not_begin_takes_nothing() {
        let layout = Layout::new::<u64>();
        std::thread::spawn(move || assert!(Arena::take(layout).is_none())).join().unwrap();
    }
}
