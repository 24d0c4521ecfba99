//! Watches a directory through inotify for files that are opened, read, written or
//! created.

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

pub(crate) struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Starts to watch the directory and the files in it.
    pub(crate) fn new(directory: &Path) -> DirectoryWatch {
        let watched = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).and_then(|watch| {
            add_watch(&watch, directory, WatchFlags::ALL_EVENTS)?;
            Ok(watch)
        });
        DirectoryWatch(watched.unwrap_or_else(|error| panic!("{} cannot be watched: {error}", directory.display())))
    }

    /// Panics if anything happened in the directory.
    #[track_caller]
    pub(crate) fn assert_no_events(&self) {
        let mut buffer = [const { MaybeUninit::uninit() }; 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        if let Ok(event) = events.next() {
            panic!("{:?} happened to {:?}", event.events(), event.file_name());
        }
    }
}
