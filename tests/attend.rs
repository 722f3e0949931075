//! `examples/attend` as a program: given cases, flags, forms, bad input, whole results; its reader
//! under random bytes.

#[path = "attend/bad.rs"]
mod bad;
#[path = "attend/flags.rs"]
mod flags;
#[path = "attend/forms.rs"]
mod forms;
#[path = "attend/fuzz.rs"]
mod fuzz;
#[path = "attend/given.rs"]
mod given;
#[path = "attend/hostile.rs"]
mod hostile;
#[path = "attend/made.rs"]
mod made;
#[path = "attend/tool.rs"]
mod tool;
#[path = "attend/twice.rs"]
mod twice;
#[path = "attend/whole.rs"]
mod whole;
