//! What was measured to be best, for the planner to look up.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Choice, Class};

/// The best choice of each class of problems that was measured on a device. Cheap to clone.
///
/// A plan by the default choice takes the one of its class. One that the problem at hand does not
/// allow counts as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    choices: Arc<BTreeMap<Class, Choice>>,
}

impl Tuning {
    /// The same with one more class, or another choice for one.
    #[must_use]
    pub fn with(mut self, class: Class, choice: Choice) -> Tuning {
        Arc::make_mut(&mut self.choices).insert(class, choice);
        self
    }

    /// The choice of a class, if it was measured.
    pub fn get(&self, class: &Class) -> Option<Choice> {
        self.choices.get(class).copied()
    }

    /// All classes and their choices, in the order of classes.
    pub fn iter(&self) -> impl Iterator<Item = (&Class, &Choice)> {
        self.choices.iter()
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// True if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }
}
