//! JSON for people too: indented, but with each innermost row of a table on one line.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes `value` as one JSON document and a newline.
///
/// # Errors
/// Those of the writer.
pub fn write(mut writer: impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let formatter = Rows { pretty: PrettyFormatter::with_indent(b"  "), containers: Vec::new() };
    value.serialize(&mut Serializer::with_formatter(&mut writer, formatter)).map_err(io::Error::from)?;
    writer.write_all(b"\n")
}

/// `value` as [`write()`] would write it.
///
/// # Errors
/// Those of the value's own serialisation.
pub fn to_string(value: &impl Serialize) -> io::Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes, value)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Indents like [`PrettyFormatter`], except within a container that lies directly in an array: a row of a table.
struct Rows {
    pretty: PrettyFormatter<'static>,
    containers: Vec<Container>,
}

#[derive(Clone, Copy, PartialEq)]
enum Container {
    Array,
    Object,
    Row,
}

impl Rows {
    fn in_row(&self) -> bool {
        self.containers.last() == Some(&Container::Row)
    }

    /// Whether a container that begins now is a row. An array's objects are rows only where the array's parent is itself
    /// in an object of an array: `points` holds documents, their `outliers` hold rows.
    fn begins_row(&self) -> bool {
        self.in_row() || (self.containers.last() == Some(&Container::Array) && self.containers.len() > 2)
    }
}

impl Formatter for Rows {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.begins_row() {
            self.containers.push(Container::Row);
            return writer.write_all(b"[");
        }
        self.containers.push(Container::Array);
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.containers.pop() {
            Some(Container::Row) => writer.write_all(b"]"),
            _ => self.pretty.end_array(writer),
        }
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.in_row() {
            return writer.write_all(if first { b"" } else { b", " });
        }
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_row() { Ok(()) } else { self.pretty.end_array_value(writer) }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.begins_row() {
            self.containers.push(Container::Row);
            return writer.write_all(b"{ ");
        }
        self.containers.push(Container::Object);
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.containers.pop() {
            Some(Container::Row) => writer.write_all(b" }"),
            _ => self.pretty.end_object(writer),
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.in_row() {
            return writer.write_all(if first { b"" } else { b", " });
        }
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_row() { Ok(()) } else { self.pretty.end_object_value(writer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn rows_of_a_table_stand_on_one_line_each() {
        let value = json!({ "points": [ { "config": { "bs": 8 }, "rows": [ [1, 2], [3, 4] ], "top": [ { "a": 1, "b": 2 } ] } ] });
        let text = to_string(&value).unwrap();
        assert!(text.contains("        [1, 2],\n        [3, 4]\n"), "{text}");
        assert!(text.contains("{ \"a\": 1, \"b\": 2 }\n"), "{text}");
        assert!(text.contains("\"config\": {\n"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
