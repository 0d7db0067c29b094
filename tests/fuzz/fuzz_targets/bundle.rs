//! The bundle reader: whatever the bytes, nothing outside its directory is touched and it ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workers::bundle::{Limits, Pick, unpack};

fuzz_target!(|bytes: &[u8]| {
    let outside = tempfile::tempdir().expect("a temporary directory");
    let inside = outside.path().join("inside");
    std::fs::create_dir(&inside).expect("a directory");
    let limits = Limits { bytes: 1 << 20, entries: 1000 };
    let _ = unpack(bytes, &Pick::default(), &inside, "single", limits);
    let entries = std::fs::read_dir(outside.path()).expect("it is still there").count();
    assert_eq!(entries, 1, "something was made outside");
});
