//! Who may do what, on a running platform. The whole matrix of the HTTP half is in
//! `src/http/tests/auth`.

mod http;
