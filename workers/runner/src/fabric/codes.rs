//! From Fabric's and the adapters' error codes to the platform's failure codes.

use std::io;

use errand_runner::Failure;
use nemo_fabric_core::FabricError;

/// The code of an error that Fabric raised.
pub(crate) fn failure_of_error(error: &FabricError) -> Failure {
    match error {
        FabricError::UnknownAdapter { .. }
        | FabricError::UnknownAdapterTarget { .. }
        | FabricError::AmbiguousDescriptor { .. }
        | FabricError::AdapterDescriptorMismatch { .. }
        | FabricError::InvalidAdapterDescriptor { .. }
        | FabricError::InvalidAdapterTargetDescriptor { .. }
        | FabricError::UnsupportedRuntimeAdapter { .. }
        | FabricError::PythonInterpreterUnavailable { .. }
        | FabricError::ProcessRunner { .. } => Failure::AdapterMissing,
        FabricError::InvalidConfig { field, .. } if field == "environment.env_names" => {
            Failure::SecretMissing
        }
        FabricError::Read { source, .. } | FabricError::Write { source, .. }
            if source.kind() == io::ErrorKind::StorageFull =>
        {
            Failure::DiskFull
        }
        FabricError::AdapterLifecycleOperation { operation, code, message, .. } => {
            match (code.as_str(), *operation) {
                ("host_timeout", "invoke") => Failure::Timeout,
                ("host_crashed", _) => Failure::AgentCrashed,
                (
                    "host_timeout"
                    | "host_io"
                    | "host_unavailable"
                    | "protocol_error"
                    | "invalid_agent_run_result",
                    _,
                ) => Failure::AdapterProtocol,
                _ => failure_of(code, message),
            }
        }
        _ => Failure::AgentFailed,
    }
}

/// The code of a failure that an adapter reported in its own words.
pub(crate) fn failure_of(code: &str, message: &str) -> Failure {
    match code {
        "agent_failed" => return Failure::AgentFailed,
        "agent_crashed" => return Failure::AgentCrashed,
        "no_result" => return Failure::NoResult,
        "disk_full" => return Failure::DiskFull,
        "timeout" | "deadline_exceeded" => return Failure::Timeout,
        _ => {}
    }
    let text = format!("{code} {message}").to_lowercase().replace('_', " ");
    let says = |number: &str| {
        text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == number)
    };
    if says("429") || text.contains("rate limit") || text.contains("ratelimit") {
        Failure::ModelRateLimited
    } else if says("401") || text.contains("unauthorized") || text.contains("authentication") {
        Failure::ModelAuth
    } else {
        Failure::AgentFailed
    }
}

#[cfg(test)]
mod tests;
