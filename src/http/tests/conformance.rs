//! The reference's own test cases, by the names that they have there.

mod actions;
