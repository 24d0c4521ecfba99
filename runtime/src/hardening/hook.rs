//! For tests alone (feature `holes`): native code where the guest's would run.
