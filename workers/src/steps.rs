//! The steps, in the order of the chain.

mod resolve;

mod stage;

mod invoke;

mod act;

mod archive;

pub use act::Act;
pub use archive::Archive;
pub use invoke::{Invoke, RunSettings};
pub use resolve::Resolve;
pub use stage::Stage;
