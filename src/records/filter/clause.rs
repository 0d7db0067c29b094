//! A condition in SQL, for both databases: values are bound, never pasted. What the databases say
//! differently is in [`dialect`].

mod dialect;

use serde_json::Value;

use super::{Condition, Element, Field, Kind, Order, Scalar, Test};
use crate::records::statement::Statement;

pub(in crate::records) use dialect::Dialect;

/// A list with more values is bound as one document: PostgreSQL takes 65,535 values a statement,
/// and a short list is planned better when its length is known.
const LONG: usize = 64;

/// A condition that is being written, and the values for its places.
pub(in crate::records) struct Clause {
    dialect: Dialect,
    values: Vec<Bound>,
}

enum Bound {
    Text(String),
    Int(i64),
}

/// What a test looks at.
enum Subject {
    /// A column.
    Text(String),
    /// A column.
    Time(String),
    /// A place in a document.
    Json(Place),
}

/// A place in a document: SQL for the type and the value of what is there, NULL for nothing.
struct Place {
    kind: String,
    value: String,
}

impl Clause {
    pub(in crate::records) const fn new(dialect: Dialect) -> Self {
        Self { dialect, values: Vec::new() }
    }

    /// A place for a text.
    pub(in crate::records) fn text(&mut self, text: &str) -> String {
        self.bind(Bound::Text(text.to_owned()))
    }

    /// A place for an integer.
    pub(in crate::records) fn int(&mut self, value: i64) -> String {
        self.bind(Bound::Int(value))
    }

    /// Binds the values to a statement that has their places.
    pub(in crate::records) fn fill(&self, statement: Statement) -> Statement {
        self.values.iter().fold(statement, |statement, value| match value {
            Bound::Text(text) => statement.text(text),
            Bound::Int(value) => statement.int(*value),
        })
    }

    fn bind(&mut self, value: Bound) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// The condition. It may be NULL where it does not hold.
    pub(in crate::records) fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::All(parts) if parts.is_empty() => "1 = 1".to_owned(),
            Condition::Any(parts) if parts.is_empty() => "1 = 0".to_owned(),
            Condition::All(parts) => self.joined(parts, " AND "),
            Condition::Any(parts) => self.joined(parts, " OR "),
            Condition::Not(part) => format!("({}) IS NOT TRUE", self.condition(part)),
            Condition::Test(field, test) => {
                let subject = self.subject(field);
                self.test(&subject, test)
            }
        }
    }

    fn joined(&mut self, parts: &[Condition], by: &str) -> String {
        let parts: Vec<_> = parts.iter().map(|part| self.condition(part)).collect();
        format!("({})", parts.join(by))
    }

    fn subject(&mut self, field: &Field) -> Subject {
        let sql = field.column.sql;
        match field.kind() {
            Kind::Text | Kind::JobId => Subject::Text(sql.to_owned()),
            Kind::Time => Subject::Time(sql.to_owned()),
            Kind::Document => {
                let document = self.dialect.document(sql);
                Subject::Json(self.place(&document, &field.path))
            }
        }
    }

    fn test(&mut self, subject: &Subject, test: &Test) -> String {
        match test {
            Test::Missing => self.missing(subject),
            Test::OneOf(values) => self.one_of(subject, values),
            Test::NoneOf(values) => format!(
                "(({}) IS NOT TRUE AND ({}) IS NOT TRUE)",
                self.missing(subject),
                self.one_of(subject, values)
            ),
            Test::Ordered(order, value) => self.ordered(subject, *order, value),
            Test::Like(part) => {
                let text = self.text_of(subject);
                let part = self.text(&part.to_ascii_lowercase());
                self.dialect.holds_ignoring_case(&text, &part)
            }
            Test::StartsWith(start) => {
                let (text, start) = (self.text_of(subject), self.text(start));
                format!("substr({text}, 1, length({start})) = {start}")
            }
            Test::EndsWith(end) => {
                let (text, end) = (self.text_of(subject), self.text(end));
                format!(
                    "(length({text}) >= length({end})
                     AND substr({text}, length({text}) - length({end}) + 1) = {end})"
                )
            }
            Test::Same(_) | Test::HasKey(_) | Test::Element(_) => match subject {
                // A column is no list and no object.
                Subject::Text(_) | Subject::Time(_) => "1 = 0".to_owned(),
                Subject::Json(place) => self.structure(place, test),
            },
        }
    }

    fn missing(&self, subject: &Subject) -> String {
        match subject {
            Subject::Text(column) | Subject::Time(column) => format!("{column} IS NULL"),
            Subject::Json(place) => self.dialect.missing(place),
        }
    }

    fn one_of(&mut self, subject: &Subject, values: &[Scalar]) -> String {
        let (mut texts, mut numbers, mut flags) = (Vec::new(), Vec::new(), Vec::new());
        for value in values {
            match value {
                Scalar::Text(text) => texts.push(Value::from(text.as_str())),
                Scalar::Number(number) => numbers.push(Value::Number(number.clone())),
                Scalar::Flag(flag) => flags.push(Value::from(flag.to_string())),
            }
        }
        let sets = [
            (self.text_of(subject), Compared::Text, texts),
            (self.number_of(subject), numbers_as(subject), numbers),
            (self.flag_of(subject), Compared::Text, flags),
        ];
        let tests: Vec<_> = sets
            .into_iter()
            .filter(|(.., values)| !values.is_empty())
            .map(|(looked_at, compared, values)| {
                let set = self.set(compared, values);
                format!("{looked_at} IN ({set})")
            })
            .collect();
        match tests.len() {
            0 => "1 = 0".to_owned(),
            _ => format!("({})", tests.join(" OR ")),
        }
    }

    /// The inside of an `IN (…)`.
    fn set(&mut self, compared: Compared, values: Vec<Value>) -> String {
        if values.len() > LONG {
            let list = self.text(&Value::Array(values).to_string());
            return self.dialect.elements(compared, &list);
        }
        let places: Vec<_> = values.iter().map(|value| self.scalar(compared, value)).collect();
        places.join(", ")
    }

    fn scalar(&mut self, compared: Compared, value: &Value) -> String {
        match (compared, value.as_i64()) {
            (Compared::Text, _) => self.text(value.as_str().unwrap_or_default()),
            (Compared::Int, Some(whole)) => self.int(whole),
            (Compared::Int | Compared::Number, _) => {
                let digits = self.text(&value.to_string());
                self.dialect.number(&digits)
            }
        }
    }

    fn ordered(&mut self, subject: &Subject, order: Order, value: &Scalar) -> String {
        let sign = match order {
            Order::Before => "<",
            Order::UpTo => "<=",
            Order::After => ">",
            Order::From => ">=",
        };
        let (left, right) = match value {
            Scalar::Text(text) => (self.dialect.bytewise(&self.text_of(subject)), self.text(text)),
            Scalar::Number(number) => {
                let value = Value::Number(number.clone());
                (self.number_of(subject), self.scalar(numbers_as(subject), &value))
            }
            Scalar::Flag(_) => return "1 = 0".to_owned(),
        };
        format!("{left} {sign} {right}")
    }

    /// What asks for lists and objects.
    fn structure(&mut self, place: &Place, test: &Test) -> String {
        match test {
            Test::Same(value) => {
                let value = self.text(&value.to_string());
                self.dialect.same(place, &value)
            }
            Test::HasKey(key) => {
                let key = self.text(key);
                self.dialect.has_key(place, &key)
            }
            Test::Element(element) => {
                let elements = self.dialect.list(place);
                let itself = self.dialect.element();
                let condition = match element {
                    Element::Itself(tests) => {
                        let kind = format!("{} NOT IN ('array', 'object')", itself.kind);
                        let subject = Subject::Json(itself);
                        let tests = tests.iter().map(|test| self.test(&subject, test));
                        [kind].into_iter().chain(tests).collect::<Vec<_>>()
                    }
                    Element::Members(members) => {
                        let object = self.dialect.object(&itself);
                        let tests = members.iter().map(|(key, test)| {
                            let place = self.place(&object, std::slice::from_ref(key));
                            self.test(&Subject::Json(place), test)
                        });
                        let tests = tests.collect::<Vec<_>>();
                        [format!("{} = 'object'", itself.kind)].into_iter().chain(tests).collect()
                    }
                };
                format!("EXISTS (SELECT 1 FROM {elements} WHERE {})", condition.join(" AND "))
            }
            _ => "1 = 0".to_owned(),
        }
    }

    fn place(&mut self, document: &str, path: &[String]) -> Place {
        let dialect = self.dialect;
        dialect.place(document, path, &mut |text| self.text(text))
    }

    /// What is there if it is a text.
    fn text_of(&self, subject: &Subject) -> String {
        match subject {
            Subject::Text(column) => column.clone(),
            Subject::Time(_) => "NULL".to_owned(),
            Subject::Json(place) => self.dialect.text(place),
        }
    }

    /// What is there if it is a number.
    fn number_of(&self, subject: &Subject) -> String {
        match subject {
            Subject::Text(_) => "NULL".to_owned(),
            Subject::Time(column) => column.clone(),
            Subject::Json(place) => self.dialect.number_at(place),
        }
    }

    /// `true` or `false` if it is one of them.
    fn flag_of(&self, subject: &Subject) -> String {
        match subject {
            Subject::Text(_) | Subject::Time(_) => "NULL".to_owned(),
            Subject::Json(place) => self.dialect.flag(place),
        }
    }
}

/// As what a value is compared.
#[derive(Clone, Copy)]
enum Compared {
    Text,
    Int,
    Number,
}

const fn numbers_as(subject: &Subject) -> Compared {
    match subject {
        Subject::Time(_) => Compared::Int,
        Subject::Text(_) | Subject::Json(_) => Compared::Number,
    }
}
