//! agent.yaml: whatever the text, it is normalised or refused, and the normal form is stable.
#![no_main]

use errand::catalog::agent_config::normalise;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(config) = serde_saphyr::from_str::<Value>(text) else { return };
    if let Ok(normal) = normalise(&config) {
        assert_eq!(normalise(&Value::Object(normal.clone())), Ok(normal));
    }
});
