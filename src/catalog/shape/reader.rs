//! Reads JSON by a shape. It goes on after a violation, so that one answer names them all, or as
//! many as it can hold.

use serde_json::{Map, Number, Value, json};

use super::{Absent, Field, Loc, Range, Shape, Table, Unknown, Violation, amount, is_deeper_than};

/// Objects and lists within each other. What is read here is stored within further documents, and
/// none of them may become deeper than the JSON reader can read back, which is 127.
const MAX_DEPTH: usize = 100;

/// Violations of one answer at most: each quotes what was sent, and a body may hold millions.
const MAX_VIOLATIONS: usize = 100;

/// Why a value is too deep to be kept, if it is.
pub(crate) fn too_deep(value: &Value, loc: &[Loc]) -> Option<Violation> {
    is_deeper_than(MAX_DEPTH, value).then(|| {
        let text = format!("JSON must not be nested deeper than {MAX_DEPTH} levels");
        Violation::rule(loc, &text, &Value::Null)
    })
}

/// Reads a value. `loc` is where it stands, for the violations.
pub(crate) fn read(shape: &Shape, value: &Value, loc: &[Loc]) -> Result<Value, Vec<Violation>> {
    Reader { loc: loc.to_vec(), found: Vec::new(), unknown: None }.read(shape, value)
}

/// The same, but whatever the tables say, at every level, keys that they do not have are left out.
pub(crate) fn read_known(
    shape: &Shape,
    value: &Value,
    loc: &[Loc],
) -> Result<Value, Vec<Violation>> {
    let unknown = Some(Unknown::Dropped);
    Reader { loc: loc.to_vec(), found: Vec::new(), unknown }.read(shape, value)
}

/// The object of a table when nothing is given.
fn filled(table: &Table) -> Value {
    let fields =
        table.fields.iter().filter_map(|field| Some((field.name.to_owned(), absent(field)?)));
    Value::Object(fields.collect())
}

/// What stands for a field that is not given.
fn absent(field: &Field) -> Option<Value> {
    Some(match field.absent {
        Absent::Refused | Absent::Dropped => return None,
        Absent::Null => Value::Null,
        Absent::Text(text) => json!(text),
        Absent::Number(number) => json!(number),
        Absent::Bool(flag) => json!(flag),
        Absent::List => json!([]),
        Absent::Object => match field.shape {
            Shape::Object(table) => filled(table),
            _ => json!({}),
        },
    })
}

struct Reader {
    loc: Vec<Loc>,
    found: Vec<Violation>,
    /// What becomes of unknown keys; `None`: what each table says.
    unknown: Option<Unknown>,
}

impl Reader {
    fn read(mut self, shape: &Shape, value: &Value) -> Result<Value, Vec<Violation>> {
        if let Some(violation) = too_deep(value, &self.loc) {
            return Err(vec![violation]);
        }
        if amount::of_value(value) > amount::MAX_VALUES {
            return Err(vec![Violation::rule(&self.loc, &amount::too_many(), &Value::Null)]);
        }
        let read = self.value(shape, value);
        self.found.truncate(MAX_VIOLATIONS);
        if self.found.is_empty() { Ok(read) } else { Err(self.found) }
    }

    fn value(&mut self, shape: &Shape, value: &Value) -> Value {
        if self.found.len() >= MAX_VIOLATIONS {
            return Value::Null;
        }
        match shape {
            Shape::Text | Shape::Checked(_) | Shape::Pattern { .. } | Shape::Short { .. } => {
                self.text(shape, value)
            }
            Shape::Words(words) => self.word(words, value),
            Shape::Bool => self.flag(value),
            Shape::Number(range) => self.number(*range, value),
            Shape::StrictNumber(range) if value.is_number() => self.number(*range, value),
            Shape::StrictNumber(_) => {
                self.wrong("float_type", "Input should be a valid number", value)
            }
            Shape::Integer { least, most } => self.integer(*least, *most, value),
            Shape::Json => value.clone(),
            Shape::Dict if value.is_object() => value.clone(),
            Shape::Dict => self.no_dict(value),
            Shape::Map(shape) => self.map(shape, value),
            Shape::List(shape) => self.list(shape, value),
            Shape::Object(table) => self.object(table, value),
            Shape::TextOr { text, object } => match value {
                Value::String(_) => self.value(text, value),
                Value::Object(_) => self.object(object, value),
                _ => self.wrong("string_type", "Input should be a valid string or object", value),
            },
        }
    }

    fn text(&mut self, shape: &Shape, value: &Value) -> Value {
        let Value::String(text) = value else {
            return self.wrong("string_type", "Input should be a valid string", value);
        };
        match shape {
            Shape::Checked(check) => match check(text) {
                Ok(text) => Value::String(text),
                Err(reason) => {
                    self.found.push(Violation::rule(&self.loc, &reason, value));
                    Value::Null
                }
            },
            Shape::Pattern { pattern, matches } if !matches(text) => {
                let msg = format!("String should match pattern '{pattern}'");
                self.note("string_pattern_mismatch", &msg, value, json!({"pattern": pattern}))
            }
            Shape::Short { most } if text.chars().count() > *most => {
                let msg = format!("String should have at most {most} characters");
                self.note("string_too_long", &msg, value, json!({"max_length": most}))
            }
            _ => value.clone(),
        }
    }

    fn word(&mut self, words: &[&str], value: &Value) -> Value {
        if words.iter().any(|word| value.as_str() == Some(*word)) {
            return value.clone();
        }
        let expected = alternatives(words);
        let kind = if words.len() == 1 { "literal_error" } else { "enum" };
        let msg = format!("Input should be {expected}");
        self.note(kind, &msg, value, json!({"expected": expected}))
    }

    fn flag(&mut self, value: &Value) -> Value {
        match value {
            Value::Bool(_) => value.clone(),
            Value::String(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" | "y" | "t" => Value::Bool(true),
                "false" | "0" | "no" | "off" | "n" | "f" => Value::Bool(false),
                _ => {
                    let msg = "Input should be a valid boolean, unable to interpret input";
                    self.wrong("bool_parsing", msg, value)
                }
            },
            Value::Number(number) if number.as_u64().is_some_and(|number| number < 2) => {
                Value::Bool(number.as_u64() == Some(1))
            }
            _ => self.wrong("bool_type", "Input should be a valid boolean", value),
        }
    }

    fn number(&mut self, range: Range, value: &Value) -> Value {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.trim().parse() {
                Ok(number) => Some(number),
                Err(_) => {
                    let msg = "Input should be a valid number, unable to parse string as a number";
                    return self.wrong("float_parsing", msg, value);
                }
            },
            _ => return self.wrong("float_type", "Input should be a valid number", value),
        };
        let Some(number) = number.filter(|number: &f64| number.is_finite()) else {
            return self.wrong("finite_number", "Input should be a finite number", value);
        };
        match range {
            Range { above: Some(bound), .. } if number <= bound => {
                let msg = format!("Input should be greater than {bound}");
                self.note("greater_than", &msg, value, json!({"gt": bound}))
            }
            Range { least: Some(bound), .. } if number < bound => {
                let msg = format!("Input should be greater than or equal to {bound}");
                self.note("greater_than_equal", &msg, value, json!({"ge": bound}))
            }
            Range { most: Some(bound), .. } if number > bound => {
                let msg = format!("Input should be less than or equal to {bound}");
                self.note("less_than_equal", &msg, value, json!({"le": bound}))
            }
            _ => Number::from_f64(number).map_or(Value::Null, Value::Number),
        }
    }

    fn integer(&mut self, least: u64, most: u64, value: &Value) -> Value {
        let Value::Number(number) = value else {
            return self.wrong("int_type", "Input should be a valid integer", value);
        };
        let whole = match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), ..) => i128::from(whole),
            (None, Some(whole), _) => i128::from(whole),
            // Exact: the value is whole and far inside the range of i128.
            (None, None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e30 => {
                float as i128
            }
            _ => {
                let msg = "Input should be a valid integer, got a number with a fractional part";
                return self.wrong("int_from_float", msg, value);
            }
        };
        if whole < i128::from(least) {
            let msg = format!("Input should be greater than or equal to {least}");
            return self.note("greater_than_equal", &msg, value, json!({"ge": least}));
        }
        match u64::try_from(whole) {
            Ok(whole) if whole <= most => json!(whole),
            _ => {
                let msg = format!("Input should be less than or equal to {most}");
                self.note("less_than_equal", &msg, value, json!({"le": most}))
            }
        }
    }

    fn map(&mut self, shape: &Shape, value: &Value) -> Value {
        let Value::Object(map) = value else { return self.no_dict(value) };
        let read = map.iter().map(|(key, value)| {
            (key.clone(), self.at(Loc::Key(key.clone()), |reader| reader.value(shape, value)))
        });
        Value::Object(read.collect())
    }

    fn list(&mut self, shape: &Shape, value: &Value) -> Value {
        let Value::Array(list) = value else {
            return self.wrong("list_type", "Input should be a valid list", value);
        };
        let read = list
            .iter()
            .enumerate()
            .map(|(index, value)| self.at(Loc::Index(index), |reader| reader.value(shape, value)));
        Value::Array(read.collect())
    }

    fn object(&mut self, table: &Table, value: &Value) -> Value {
        let Value::Object(given) = value else {
            let msg = "Input should be a valid dictionary or object to extract fields from";
            return self.wrong("model_attributes_type", msg, value);
        };
        let before = self.found.len();
        let mut read = Map::new();
        for field in table.fields {
            if let Some(value) = self.at(field.name.into(), |reader| reader.field(field, given)) {
                read.insert(field.name.to_owned(), value);
            }
        }
        if self.unknown.unwrap_or(table.unknown) == Unknown::Refused {
            let known = |key: &str| table.fields.iter().any(|field| field.name == key);
            for (key, value) in given.iter().filter(|(key, _)| !known(key)).take(MAX_VIOLATIONS) {
                self.at(Loc::Key(key.clone()), |reader| {
                    reader.wrong("extra_forbidden", "Extra inputs are not permitted", value)
                });
            }
        }
        if self.found.len() == before
            && let Err(reason) = (table.rule)(&read)
        {
            self.found.push(Violation::rule(&self.loc, &reason, value));
        }
        Value::Object(read)
    }

    fn field(&mut self, field: &Field, given: &Map<String, Value>) -> Option<Value> {
        match (given.get(field.name), &field.absent) {
            (None, Absent::Refused) => {
                self.found.push(Violation::missing(&self.loc, &Value::Object(given.clone())));
                None
            }
            (Some(value), Absent::Refused) => Some(self.value(&field.shape, value)),
            (None | Some(Value::Null), _) => absent(field),
            (Some(value), _) => Some(self.value(&field.shape, value)),
        }
    }

    fn at<T>(&mut self, loc: Loc, read: impl FnOnce(&mut Self) -> T) -> T {
        self.loc.push(loc);
        let read = read(self);
        self.loc.pop();
        read
    }

    fn no_dict(&mut self, value: &Value) -> Value {
        self.wrong("dict_type", "Input should be a valid dictionary", value)
    }

    fn wrong(&mut self, kind: &'static str, msg: &str, value: &Value) -> Value {
        self.found.push(Violation::new(kind, &self.loc, msg, value));
        Value::Null
    }

    fn note(&mut self, kind: &'static str, msg: &str, value: &Value, ctx: Value) -> Value {
        self.found.push(Violation::new(kind, &self.loc, msg, value).with(ctx));
        Value::Null
    }
}

/// `'a', 'b' or 'c'`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
