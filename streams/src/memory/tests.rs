use std::sync::Arc;

use super::*;
use crate::broker::conformance::{self, Rig, SMALL_INTAKE_BYTES};

struct InMemory(Memory);

#[async_trait]
impl Rig for InMemory {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::new(self.0.clone())
    }

    fn small_intake(&self) -> Arc<dyn Broker> {
        let limits = Limits { intake_max_bytes: SMALL_INTAKE_BYTES, ..Limits::default() };
        Arc::new(Memory::new(limits))
    }

    async fn delete_consumer(&self, consumer: &ConsumerSpec) {
        self.0.delete_consumer(consumer);
    }
}

#[tokio::test]
async fn it_does_what_every_broker_must() {
    conformance::exercise(&InMemory(Memory::new(Limits::default()))).await;
}

#[test]
fn filters_match_as_the_servers_do() {
    for (filter, subject, expected) in [
        ("", "a.b", true),
        (">", "a", true),
        ("a.>", "a.b.c", true),
        ("a.>", "a", false),
        ("a.*", "a.b", true),
        ("a.*", "a.b.c", false),
        ("*.b", "a.b", true),
        ("a.b", "a.b", true),
        ("a.b", "a.c", false),
        ("a.b", "a", false),
        ("a", "a.b", false),
    ] {
        assert_eq!(matches(filter, subject), expected, "'{filter}' on '{subject}'");
    }
}
