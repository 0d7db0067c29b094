//! FC-D: jobs that would be stuck in pending or running for ever.
