//! Trees that are odd by their size or their shape: holes, depth, times, and what moves.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT};
use tempfile::TempDir;

use super::super::descent::{Descent, existing};
use super::super::{
    FileFound, Limits, Pick, Report, UnpackError, Writer, copy_entries, files, remove_tree, unpack,
    write_directory,
};
use super::{listing, pack, unpack_into};

const GIB: u64 = 1 << 30;

/// A file of 20 GiB with a few bytes here and there.
fn sparse(root: &Path) -> PathBuf {
    let path = root.join("big");
    let file = File::create(&path).expect("create");
    file.set_len(20 * GIB).expect("truncate");
    for at in 0..40_u8 {
        file.write_all_at(&[at + 1; 100], u64::from(at) * GIB / 3 + 5000).expect("write");
    }
    path
}

fn system_tar(bundle: &[u8], arguments: &[&str]) -> (TempDir, String) {
    let dir = TempDir::new().expect("a temporary directory");
    fs::write(dir.path().join("b.tar.gz"), bundle).expect("write");
    let mut tar = Command::new("tar");
    tar.args(arguments).arg("-f").arg(dir.path().join("b.tar.gz")).arg("-C").arg(dir.path());
    let output = tar.env("TZ", "UTC").output().expect("tar runs");
    assert!(output.status.success(), "{output:?}");
    (dir, String::from_utf8(output.stdout).expect("UTF-8"))
}

/// FC-F12: a file is stored by its data and keeps its holes, whoever unpacks it.
#[test]
fn case_f12_a_sparse_file_is_stored_sparse() {
    let dir = TempDir::new().expect("a temporary directory");
    let path = sparse(dir.path());
    File::create(dir.path().join("only a hole")).expect("create").set_len(GIB).expect("truncate");
    let bundle = pack(dir.path());
    assert!(bundle.len() < 20_000, "{} bytes", bundle.len());

    let check = |root: &Path| {
        let meta = fs::metadata(root.join("big")).expect("stat");
        assert_eq!(meta.len(), 20 * GIB);
        assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
        let file = File::open(root.join("big")).expect("open");
        let mut found = [0; 102];
        for at in 0..40_u8 {
            let offset = u64::from(at) * GIB / 3 + 4999;
            file.read_exact_at(&mut found, offset).expect("read");
            assert_eq!((found[0], found[1], found[100], found[101]), (0, at + 1, at + 1, 0));
        }
        let hole = fs::metadata(root.join("only a hole")).expect("stat");
        assert_eq!((hole.len(), hole.blocks()), (GIB, 0));
    };
    check(unpack_into(&bundle, &Pick::default()).expect("unpacks").path());
    check(&system_tar(&bundle, &["-xz"]).0.path().join("output_workdir"));
    let mut copy = Writer::new(Vec::new(), "w", 0o755, 1).expect("begins");
    let all = Pick::default();
    copy_entries(&bundle[..], &all, &mut copy, b"", &|_, _| false, Limits::default())
        .expect("copies");
    check(unpack_into(&copy.finish().expect("ends"), &all).expect("unpacks").path());

    // What counts is what is there; the message says both.
    let limits = Limits { bytes: GIB, entries: 10 };
    let target = TempDir::new().expect("a temporary directory");
    unpack(&bundle[..], &all, target.path(), "", limits).expect("its data is within the limit");
    let limits = Limits { bytes: 1000, entries: 10 };
    let refused = unpack(&bundle[..], &all, target.path(), "", limits).expect_err("too large");
    let real = fs::metadata(&path).expect("stat").blocks() * 512;
    assert_eq!(
        refused.to_string(),
        format!(
            "bundle holds more than 1000 bytes: 'output_workdir/big' has a size of {} bytes, of \
             which {real} count",
            20 * GIB
        )
    );
    let refused = files(&bundle[..], Limits { bytes: GIB, entries: 10 }, |_, _| Ok(()));
    assert!(matches!(refused, Err(UnpackError::TooLarge(_))), "one by one they have no holes");
}

#[test]
fn a_sparse_file_reads_as_it_did() {
    let dir = TempDir::new().expect("a temporary directory");
    let file = File::create(dir.path().join("f")).expect("create");
    file.set_len(100_000).expect("truncate");
    file.write_all_at(b"in the middle", 50_000).expect("write");
    let wanted = fs::read(dir.path().join("f")).expect("read");
    let mut found = Vec::new();
    files(&pack(dir.path())[..], Limits::default(), |_, file| {
        if let FileFound::File { data, .. } = file {
            data.read_to_end(&mut found)?;
        }
        Ok(())
    })
    .expect("reads");
    assert!(found == wanted);
}

/// Does something with the tree each time that a piece of its bundle is written, but the first.
struct Meddling<F: FnMut()>(F, u64);

impl<F: FnMut()> Write for Meddling<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 += bytes.len() as u64;
        if self.1 > 200_000 {
            (self.0)();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Half a megabyte that does not shrink.
fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(1 << 19).collect()
}

/// FC-F8: a file that changes while it is saved has the size that it began with, and is named.
#[test]
fn case_f8_what_changes_while_it_is_saved_is_named() {
    let check = |meddle: &dyn Fn(&File), wanted: &[&str]| {
        let dir = TempDir::new().expect("a temporary directory");
        fs::write(dir.path().join("f"), noise()).expect("write");
        fs::write(dir.path().join("last"), "whole").expect("write");
        let file = File::options().append(true).open(dir.path().join("f")).expect("open");
        let mut bundle = Vec::new();
        let out = Meddling(|| meddle(&file), 0);
        let (_, report) = write_directory(dir.path(), "w", Both(out, &mut bundle), None)
            .expect("it is saved all the same");
        assert_eq!(report.changed, wanted);
        assert!(report.skipped.is_empty());
        let (unpacked, _) = system_tar(&bundle, &["-xz"]);
        let saved = fs::metadata(unpacked.path().join("w/f")).expect("stat");
        assert_eq!(saved.len(), 1 << 19);
        assert_eq!(fs::read(unpacked.path().join("w/last")).expect("read"), b"whole");
    };
    check(&|_| {}, &[]);
    check(&|mut file| file.write_all(b"more").expect("write"), &["f"]);
    check(&|file| file.set_len(300_000).expect("truncate"), &["f"]);
    check(&|file| file.set_modified(std::time::UNIX_EPOCH).expect("touch"), &["f"]);
}

/// Writes to two.
struct Both<'a, W>(W, &'a mut Vec<u8>);

impl<W: Write> Write for Both<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a directory so deep that no path leads there: 60 names of 200 bytes, or 1,500 of two.
fn dig(root: &Path, name: &str, times: usize) {
    let mut descent = Descent::open(root).expect("open");
    let mut path = Vec::new();
    for _ in 0..times {
        let at = descent.go(&path, existing).expect("descends");
        rustix::fs::mkdirat(at, name, Mode::RWXU).expect("mkdir");
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
    }
    let at = descent.go(&path, existing).expect("descends");
    rustix::fs::symlinkat("the end", at, "link").expect("symlink");
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(at, "file", flags, Mode::RUSR).expect("create");
    File::from(file).write_all(b"deep").expect("write");
}

#[test]
fn no_path_is_too_deep() {
    let dir = TempDir::new().expect("a temporary directory");
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("mkdir");
    dig(&root, &"n".repeat(200), 60);
    dig(&root, "dd", 1500);
    let (bundle, report) = write_directory(&root, "w", Vec::new(), None).expect("packs");
    assert!(report.skipped.is_empty(), "{report:?}");
    let back = dir.path().join("back");
    fs::create_dir(&back).expect("mkdir");
    unpack(&bundle[..], &Pick::default(), &back, "", Limits::default()).expect("unpacks");
    assert!(listing(&root).split(|byte| *byte == b'\n').count() > 1500);
    assert!(listing(&root) == listing(&back));
    assert!(write_directory(&back, "w", Vec::new(), None).expect("packs").0 == bundle);
    remove_tree(&root).expect("removes");
    remove_tree(&back).expect("removes");
    assert!(!root.exists() && !back.exists());
}

#[test]
fn a_tree_without_permissions_is_removed() {
    let dir = TempDir::new().expect("a temporary directory");
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("a/b")).expect("mkdir");
    fs::write(root.join("a/b/f"), "x").expect("write");
    symlink("/", root.join("a/out")).expect("symlink");
    for name in ["a/b/f", "a/b", "a", ""] {
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(root.join(name), closed).expect("chmod");
    }
    remove_tree(&root).expect("removes");
    assert!(!root.exists());
}

#[test]
fn times_of_any_year_round_trip() {
    let dir = TempDir::new().expect("a temporary directory");
    for (name, seconds) in [("ancient", -2_000_000_000), ("last", -1), ("far", 1 << 33)] {
        let path = dir.path().join(name);
        fs::write(&path, name).expect("write");
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: 0 },
        };
        let flags = rustix::fs::AtFlags::empty();
        rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags).expect("touch");
    }
    let bundle = pack(dir.path());
    let ours = unpack_into(&bundle, &Pick::default()).expect("unpacks");
    let theirs = system_tar(&bundle, &["-xz"]).0;
    for name in ["ancient", "last", "far"] {
        let time = |root: &Path| fs::metadata(root.join(name)).expect("stat").mtime();
        assert_eq!(time(ours.path()), time(dir.path()), "{name}");
        assert_eq!(time(&theirs.path().join("output_workdir")), time(dir.path()), "{name}");
    }
}

/// FC-F2: the policy, pinned: links are kept as links and never followed, further names are hard
/// links, modes stay, odd kinds are left out.
#[test]
fn case_f2_the_listing_of_a_fixed_tree() {
    let dir = TempDir::new().expect("a temporary directory");
    let root = dir.path().join("tree");
    fs::create_dir_all(root.join("empty")).expect("mkdir");
    fs::write(root.join("script.sh"), "#!/bin/sh\n").expect("write");
    fs::hard_link(root.join("script.sh"), root.join("second")).expect("link");
    symlink("nowhere", root.join("broken")).expect("symlink");
    symlink("/etc/passwd", root.join("absolute")).expect("symlink");
    symlink("empty", root.join("to-directory")).expect("symlink");
    let mode = |name: &str, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).expect("chmod");
    };
    mode("script.sh", 0o4755);
    mode("empty", 0o1777);
    mode("", 0o750);
    let mut touch = Command::new("touch");
    touch.args(["-h", "-d", "2001-02-03T04:05:06Z", "absolute", "broken", "to-directory"]);
    touch.args(["script.sh", "empty", "."]).current_dir(&root);
    assert!(touch.status().expect("touch runs").success());

    let (bundle, Report { skipped, .. }) =
        write_directory(&root, "output_workdir", Vec::new(), None).expect("packs");
    assert!(skipped.is_empty());
    let (_, listed) = system_tar(&bundle, &["-tvz", "--numeric-owner", "--full-time"]);
    let wanted = "\
drwxr-x--- 0/0               0 2001-02-03 04:05:06 output_workdir/
lrwxrwxrwx 0/0               0 2001-02-03 04:05:06 output_workdir/absolute -> /etc/passwd
lrwxrwxrwx 0/0               0 2001-02-03 04:05:06 output_workdir/broken -> nowhere
drwxrwxrwt 0/0               0 2001-02-03 04:05:06 output_workdir/empty/
-rwsr-xr-x 0/0              10 2001-02-03 04:05:06 output_workdir/script.sh
hrwsr-xr-x 0/0               0 2001-02-03 04:05:06 output_workdir/second link to output_workdir/script.sh
lrwxrwxrwx 0/0               0 2001-02-03 04:05:06 output_workdir/to-directory -> empty
";
    assert_eq!(listed, wanted);
}

/// FC-F4 and F5: what cannot be stored is named and never opened, and no name leads outside.
#[test]
fn case_f5_no_name_holds_the_path_of_the_host() {
    let dir = TempDir::new().expect("a temporary directory");
    fs::write(dir.path().join("f"), "ok").expect("write");
    symlink(dir.path(), dir.path().join("self")).expect("symlink");
    let (_, listed) = system_tar(&pack(dir.path()), &["-tz"]);
    let host = dir.path().display().to_string();
    for name in listed.lines() {
        assert!(!name.starts_with('/') && !name.contains(&host), "{name}");
    }
    assert_eq!(listed, "output_workdir/\noutput_workdir/f\noutput_workdir/self\n");
}

/// FC-F13: reversible means that the bytes can be had again.
#[test]
fn case_f13_names_that_are_no_text_are_shown_reversibly() {
    for (name, shown) in [
        (&b"a:b"[..], "a:b"),
        (b"back\\slash", "back\\x5cslash"),
        (b"\\xff", "\\x5cxff"),
        (b"\xff", "\\xff"),
        ("ünï".as_bytes(), "ünï"),
    ] {
        assert_eq!(super::super::display_name(name), shown);
    }
    let dir = TempDir::new().expect("a temporary directory");
    fs::write(dir.path().join(std::ffi::OsString::from_vec(vec![0xff])), "x").expect("write");
    let back = unpack_into(&pack(dir.path()), &Pick::default()).expect("unpacks");
    assert_eq!(listing(dir.path()), listing(back.path()));
}
