//! Any filter, over the fields and values that the records of these tests have or nearly have.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::records::filter::{Condition, Element, Field, JOBS, Order, Scalar, Test};
use crate::records::tests::job::second;

const FIELDS: [&str; 27] = [
    "created_at",
    "entity_type",
    "id",
    "name",
    "project",
    "source",
    "spec",
    "spec.agent.name",
    "spec.agent.nothing.there",
    "spec.agent_ref",
    "spec.context.due",
    "spec.request",
    "spec.request.0",
    "spec.request.a b",
    "spec.request.l",
    "spec.request.l.0",
    "spec.request.n",
    "spec.request.o",
    "spec.request.o.k",
    "spec.request.o.n",
    "spec.request.t",
    "spec.request.x'y); --",
    "spec.request.ключ",
    "spec.secrets",
    "status",
    "updated_at",
    "workspace",
];

const TEXTS: [&str; 21] = [
    "",
    "60",
    "A",
    "a",
    "a%b_c",
    "%",
    "_",
    "Straße",
    "ÄÖ",
    "äö",
    "Ä",
    "ä",
    "true",
    "slash",
    "\\",
    "quo\"te",
    "counter",
    "default/agent-1",
    "job-7",
    "created",
    "Project",
];

pub(super) fn condition() -> impl Strategy<Value = Condition> {
    let leaf = (select(&FIELDS[..]), test()).prop_map(|(name, test)| {
        Condition::Test(Field::find(&JOBS, name).expect("it is a field"), test)
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(Condition::All),
            vec(inner.clone(), 1..4).prop_map(Condition::Any),
            inner.prop_map(|part| Condition::Not(Box::new(part))),
        ]
    })
}

fn test() -> impl Strategy<Value = Test> {
    let members = vec((select(&["k", "n", "none"][..]).prop_map(str::to_owned), simple()), 1..3);
    prop_oneof![
        6 => simple(),
        1 => select(&["k", "KEY", "n", "a b", "\0", "quo\"te"][..])
            .prop_filter("no filter has a NUL", |key| !key.contains('\0'))
            .prop_map(|key| Test::HasKey(key.to_owned())),
        1 => select(structures()).prop_map(Test::Same),
        1 => vec(simple(), 1..3).prop_map(|tests| Test::Element(Element::Itself(tests))),
        1 => members.prop_map(|members| Test::Element(Element::Members(members))),
    ]
}

/// A test of what is no list and no object.
fn simple() -> impl Strategy<Value = Test> {
    let orders = [Order::Before, Order::UpTo, Order::After, Order::From];
    prop_oneof![
        Just(Test::Missing),
        vec(scalar(), 0..4).prop_map(Test::OneOf),
        vec(scalar(), 0..4).prop_map(Test::NoneOf),
        (select(orders.to_vec()), scalar()).prop_map(|(order, it)| Test::Ordered(order, it)),
        text().prop_map(Test::Like),
        text().prop_map(Test::StartsWith),
        text().prop_map(Test::EndsWith),
    ]
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let at = second(2).as_microsecond();
    let numbers = [json!(60), json!(60.0), json!(1.5), json!(-3), json!(0.1), json!(at)];
    let number = select(numbers.to_vec()).prop_map(|number| match number {
        Value::Number(number) => Scalar::Number(number),
        other => panic!("{other} is no number"),
    });
    prop_oneof![3 => text().prop_map(Scalar::Text), 3 => number, 1 => any::<bool>().prop_map(Scalar::Flag)]
}

fn text() -> impl Strategy<Value = String> {
    select(&TEXTS[..]).prop_map(str::to_owned)
}

fn structures() -> Vec<Value> {
    vec![
        json!([]),
        json!({}),
        json!([60.0]),
        json!(["a", "b", 60.0]),
        json!(["b", "a", 60]),
        json!({"n": 60.0, "k": "a%b_c"}),
        json!({"k": 60, "n": 60}),
        json!({"k": "a"}),
        json!([{"n": 1.0, "k": "a"}, {"k": "b", "n": 60}, 7]),
        json!({"KEY": "key"}),
    ]
}
