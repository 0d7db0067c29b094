//! The only place that knows NeMo Fabric's types: plan, check, start, invoke, stop.
//!
//! Fabric's API is young and may break with a minor release; whatever breaks has to be mended
//! here. All of it blocks, which is why it runs in a process of its own.

use std::path::Path;

use errand_runner::Failure;
use nemo_fabric_core::{
    DoctorStatus, FabricConfig, FabricError, ResolveContext, RunPlan, RunRequest, RuntimeHandle,
    doctor_plan, invoke_runtime, resolve_run_plan_from_config, start_runtime, stop_runtime,
};
use serde_json::{Map, Value};

use crate::report::{Kind, Raised};
use crate::tail::whole_lines;

pub(crate) mod codes;

/// A checked plan.
pub(crate) struct Plan(RunPlan);

/// A started adapter.
pub(crate) struct Runtime<'a> {
    plan: &'a RunPlan,
    handle: RuntimeHandle,
}

#[derive(Clone, Copy)]
enum Moment {
    Start,
    Invoke,
}

impl Plan {
    /// Resolves a configuration (Fabric's JSON form) and asks Fabric's doctor, whose verdict
    /// Fabric itself would ignore.
    pub(crate) fn new(config: Value, base: &Path) -> Result<Self, Raised> {
        let config: FabricConfig = serde_json::from_value(config).map_err(|error| {
            Raised::refused(
                Failure::AgentFailed,
                format!("the agent definition cannot be translated for Fabric: {error}"),
            )
        })?;
        let plan = resolve_run_plan_from_config(config, ResolveContext::new(base))
            .map_err(|error| raised(Moment::Start, &error))?;
        let report = doctor_plan(&plan);
        if report.status == DoctorStatus::Fail {
            let failed = report
                .checks
                .iter()
                .filter(|check| check.status == DoctorStatus::Fail)
                .map(|check| check.message.as_str());
            let reasons = Vec::from_iter(failed).join("; ");
            return Err(Raised {
                kind: Kind::Start,
                ..Raised::refused(
                    Failure::AdapterMissing,
                    format!("Fabric runtime startup failed: {reasons}"),
                )
            });
        }
        Ok(Self(plan))
    }

    /// Starts the adapter.
    pub(crate) fn start(&self) -> Result<Runtime<'_>, Raised> {
        let handle = start_runtime(&self.0).map_err(|error| raised(Moment::Start, &error))?;
        Ok(Runtime { plan: &self.0, handle })
    }
}

impl Runtime<'_> {
    /// Invokes the agent once; returns the run result in Fabric's JSON form.
    pub(crate) fn invoke(
        &self,
        request_id: &str,
        input: &str,
        context: Map<String, Value>,
    ) -> Result<Value, Raised> {
        let request = RunRequest {
            request_id: request_id.to_owned(),
            input: Value::from(input),
            context: context.into_iter().collect(),
            ..RunRequest::default()
        };
        let result = invoke_runtime(self.plan, &self.handle, request)
            .map_err(|error| raised(Moment::Invoke, &error))?;
        serde_json::to_value(&result).map_err(|error| {
            Raised::refused(
                Failure::AdapterProtocol,
                format!("the run result cannot be written as JSON: {error}"),
            )
        })
    }

    /// Stops the adapter. The result is known by now, so a failure is only told.
    pub(crate) fn stop(self) -> Result<(), String> {
        match stop_runtime(self.plan, &self.handle) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("Fabric runtime cleanup failed: {error}")),
        }
    }
}

/// Bytes of an adapter's stderr that Fabric keeps (`LOCAL_HOST_DIAGNOSTIC_LIMIT` in its runtime),
/// and how many of them it may trim.
const DIAGNOSTIC_BYTES: usize = 16 * 1024;
const CUT_MARGIN: usize = 1024;

/// Fabric keeps the end of what an adapter said on stderr, from whatever byte on.
fn whole_diagnostics(text: &str) -> &str {
    let is_cut = text.len() + CUT_MARGIN >= DIAGNOSTIC_BYTES;
    let kept = if is_cut { whole_lines(text.as_bytes()).len() } else { text.len() };
    &text[text.len() - kept..]
}

fn raised(moment: Moment, error: &FabricError) -> Raised {
    let mut text = error.to_string();
    let (kind, prefix) = match moment {
        Moment::Start => (Kind::Start, "startup"),
        Moment::Invoke => (Kind::Execution, "invocation"),
    };
    let (short, diagnostics, crashed) = match error {
        FabricError::AdapterLifecycleOperation { code, message, diagnostics, .. } => {
            let whole = whole_diagnostics(diagnostics);
            if whole.len() < diagnostics.len() {
                text = text.replace(diagnostics.as_str(), whole);
            }
            (format!("{message} ({code})"), whole.to_owned(), code == "host_crashed")
        }
        _ => (text.clone(), String::new(), false),
    };
    Raised {
        kind,
        failure: codes::failure_of_error(error),
        sentence: format!("Fabric runtime {prefix} failed: {short}"),
        message: format!("Fabric runtime {prefix} failed: {text}"),
        cause: Some(short),
        diagnostics,
        crashed,
    }
}
