//! Headers of tar entries, with names and link targets kept to the byte.
//!
//! The format is GNU tar (<https://www.gnu.org/software/tar/manual/html_node/Standard.html>);
//! names beyond 100 bytes go into a preceding entry of type `L`, link targets into one of `K`.

use std::io::{self, Read, Write};

use tar::{Builder, EntryType, Header};

/// Bytes of the name and link fields of a header.
const FIELD_BYTES: usize = 100;

/// What an entry says about itself.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    /// Its kind.
    pub(super) kind: EntryType,
    /// Permission bits, set-id and sticky bits included.
    pub(super) mode: u32,
    /// Modification time, whole seconds since the epoch.
    pub(super) mtime: u64,
    /// Bytes that follow.
    pub(super) size: u64,
}

/// Appends one entry; `data` must hold exactly `meta.size` bytes.
pub(super) fn append<W: Write>(
    builder: &mut Builder<W>,
    meta: &Meta,
    name: &[u8],
    link: Option<&[u8]>,
    data: &mut dyn Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(meta.kind);
    header.set_mode(meta.mode);
    header.set_mtime(meta.mtime);
    header.set_size(meta.size);
    header.set_uid(0);
    header.set_gid(0);
    set_field(builder, &mut header, name, EntryType::GNULongName)?;
    if let Some(link) = link {
        set_field(builder, &mut header, link, EntryType::GNULongLink)?;
    }
    header.set_cksum();
    builder.append(&header, data)
}

/// Puts a name into its field, or, when it is too long, into an entry of its own before.
fn set_field<W: Write>(
    builder: &mut Builder<W>,
    header: &mut Header,
    value: &[u8],
    long: EntryType,
) -> io::Result<()> {
    let fitting = &value[..value.len().min(FIELD_BYTES)];
    let old = header.as_old_mut();
    let field = if long == EntryType::GNULongName { &mut old.name } else { &mut old.linkname };
    field[..fitting.len()].copy_from_slice(fitting);
    if fitting.len() == value.len() {
        return Ok(());
    }
    let mut before = Header::new_gnu();
    before.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    before.set_entry_type(long);
    before.set_mode(0o644);
    before.set_size(value.len() as u64 + 1);
    before.set_cksum();
    builder.append(&before, value.chain(&b"\0"[..]))
}
