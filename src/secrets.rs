//! Secrets: values are sealed before they reach the records and opened only for those who may
//! have them. No value is ever printed, logged or kept in the clear.

mod key_file;
mod keyring;
mod rotation;
mod seal;
mod store;

pub use key_file::KeyFileError;
pub use keyring::Keyring;
pub use rotation::{Rotated, Rotation, RotationError};
pub use seal::{SealError, Sealer};
pub use store::{SecretStore, SecretStoreError, SecretValue};

#[cfg(test)]
mod tests;
