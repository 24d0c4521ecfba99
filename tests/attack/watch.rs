//! What is opened, read, written or made in a directory, as the kernel tells it.

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

pub(crate) struct Watch(OwnedFd);

impl Watch {
    /// Of the directory and the files that are in it, from now on.
    pub(crate) fn new(directory: &Path) -> Watch {
        let watched = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).and_then(|watch| {
            add_watch(&watch, directory, WatchFlags::ALL_EVENTS)?;
            Ok(watch)
        });
        Watch(watched.unwrap_or_else(|error| panic!("{} cannot be watched: {error}", directory.display())))
    }

    /// Nothing happened there.
    #[track_caller]
    pub(crate) fn is_quiet(&self) {
        let mut buffer = [const { MaybeUninit::uninit() }; 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        if let Ok(event) = events.next() {
            panic!("{:?} happened to {:?}", event.events(), event.file_name());
        }
    }
}
