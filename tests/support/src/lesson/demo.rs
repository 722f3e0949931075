//! The lesson's demo, "The cat sat on the mat": numbers in, exact values and printed figures out.

use serde_json::Value;

const FILE: &str = include_str!("../../../data/demo.json");

/// The file. A part is named by its JSON pointer, for instance `/computed/weights`.
pub struct Demo(Value);

impl Demo {
    pub fn load() -> Demo {
        Demo(serde_json::from_str(FILE).expect("the demo file"))
    }

    /// All numbers of a part, lists in lists one after the other.
    pub fn numbers(&self, pointer: &str) -> Vec<f64> {
        let number = |leaf: &Value| leaf.as_f64().unwrap_or_else(|| panic!("{pointer}: {leaf}"));
        self.leaves(pointer).into_iter().map(number).collect()
    }

    /// All texts of a part.
    pub fn texts(&self, pointer: &str) -> Vec<&str> {
        let leaves = self.leaves(pointer).into_iter();
        leaves.map(|leaf| leaf.as_str().unwrap_or_else(|| panic!("{pointer}: {leaf}"))).collect()
    }

    fn leaves(&self, pointer: &str) -> Vec<&Value> {
        let part = self.0.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the demo"));
        let mut leaves = Vec::new();
        collect(part, &mut leaves);
        leaves
    }
}

fn collect<'a>(part: &'a Value, leaves: &mut Vec<&'a Value>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, leaves)),
        leaf => leaves.push(leaf),
    }
}
