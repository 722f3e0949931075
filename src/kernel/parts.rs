//! Which files go before a kernel's own, and what they bind.

use super::{Slot, Variant, shader};
use crate::{Element, Method, Operand, Problem};

/// The files and slots of a module in the making.
pub(super) struct Parts<'a> {
    problem: &'a Problem,
    /// f16 is read as the type, not out of words.
    native: bool,
    pub files: Vec<&'static str>,
    slots: Vec<Slot>,
    /// Some file names the type f16.
    names_f16: bool,
}

impl Parts<'_> {
    pub fn new(problem: &Problem, native: bool) -> Parts<'_> {
        let files = vec![shader!("strides"), shader!("problem"), shader!("weight")];
        Parts { problem, native, files, slots: vec![Slot::Problem], names_f16: false }
    }

    /// The text of each file once, the slots in order, and the line that must be in front of all.
    pub fn finish(mut self) -> (String, Vec<Slot>, &'static str) {
        self.slots.sort_unstable();
        self.slots.dedup();
        let mut seen = Vec::new();
        self.files.retain(|file| {
            let new = !seen.contains(file);
            seen.push(*file);
            new
        });
        // Not even a device that has the type may see its name without this line.
        let enable = if self.names_f16 { "enable f16;\n" } else { "" };
        (self.files.join("\n"), self.slots, enable)
    }

    pub fn file(&mut self, text: &'static str, slot: Slot) {
        self.files.push(text);
        self.slots.push(slot);
    }

    /// `buffer` or `arena`, depending on where a tensor lies.
    fn place(&mut self, home: Operand, slot: Slot, buffer: &'static str, arena: &'static str) {
        if self.problem.is_arena() && home != Operand::Scratch {
            self.file(arena, Slot::Arena);
        } else {
            self.file(buffer, slot);
        }
    }

    pub fn tensors(&mut self, used: &[Slot]) {
        let elements = [Operand::Q, Operand::K].map(|operand| self.problem.element_of(operand));
        for element in elements {
            match element {
                Element::F32 => {}
                Element::F16 if self.native => {}
                Element::F16 => self.files.push(shader!("element_f16")),
                Element::Bf16 => self.files.push(shader!("element_bf16")),
            }
        }
        let [queries, keys] = elements;
        let native = self.native;
        self.names_f16 |= native && elements.contains(&Element::F16);
        self.files.push(match queries {
            Element::F32 => shader!("queries_f32"),
            Element::F16 if native => shader!("queries_native"),
            Element::F16 => shader!("queries_f16"),
            Element::Bf16 => shader!("queries_bf16"),
        });
        self.files.push(match keys {
            Element::F32 => shader!("keys_f32"),
            Element::F16 if native => shader!("keys_native"),
            Element::F16 => shader!("keys_f16"),
            Element::Bf16 => shader!("keys_bf16"),
        });
        let scatter = match queries {
            Element::F32 => shader!("scatter_words"),
            Element::F16 if native => shader!("scatter_words"),
            _ => shader!("scatter_pairs"),
        };
        let quads = self.problem.is_quads() && !self.problem.is_arena();
        let arena = self.problem.is_arena();
        if arena {
            self.files.push(shader!("arena"));
        }
        if !quads {
            self.files.extend([shader!("gather"), shader!("gather_queries"), scatter]);
            self.files.push(shader!("gather_keys"));
        }
        self.files.push(match (quads, arena) {
            (true, _) => shader!("queries_in_quads"),
            (_, true) => shader!("queries_in_arena"),
            _ => shader!("queries_in_words"),
        });
        self.files.push(match (quads, arena) {
            (true, _) => shader!("keys_in_quads"),
            (_, true) => shader!("keys_in_arena"),
            _ => shader!("keys_in_words"),
        });
        self.files.push(shader!("rows_strided"));
        let own = |&slot: &Slot| if self.problem.is_arena() { Slot::Arena } else { slot };
        self.slots.extend(used.iter().map(own));
    }

    pub fn bias(&mut self) {
        if self.problem.has_bias() {
            self.place(Operand::Bias, Slot::Bias, shader!("bias_buffer"), shader!("bias_arena"));
        } else {
            self.files.push(shader!("bias_none"));
        }
    }

    pub fn mask(&mut self) {
        if self.problem.has_mask() {
            self.place(Operand::Mask, Slot::Mask, shader!("mask_buffer"), shader!("mask_arena"));
        } else {
            self.files.push(shader!("mask_none"));
        }
    }

    /// The buffer of small operands, if the kernel needs one of these.
    pub fn tables(&mut self, needed: &[Operand]) {
        if needed.iter().any(|&operand| self.problem.has_table(operand)) {
            self.file(shader!("tables"), Slot::Tables);
        }
    }

    pub fn sequences(&mut self) {
        self.tables(&[Operand::QLens, Operand::KvLens, Operand::CuSeqlensQ]);
        self.file(shader!("lengths"), Slot::Lengths);
        self.files.push(if self.problem.sequences().is_some() {
            shader!("sequences_packed")
        } else if self.problem.has_lengths() {
            shader!("sequences_lens")
        } else {
            shader!("sequences_same")
        });
    }

    pub fn final_score(&mut self) {
        self.tables(&[Operand::Slopes]);
        self.files.push(match self.problem.has_table(Operand::Slopes) {
            true => shader!("alibi_tables"),
            false => shader!("alibi_none"),
        });
        self.files.push(shader!("score"));
    }

    pub fn sinks(&mut self) {
        self.files.push(match self.problem.has_table(Operand::Sinks) {
            true => shader!("sinks_tables"),
            false => shader!("sinks_none"),
        });
    }

    pub fn lse(&mut self) {
        if self.problem.outputs().lse {
            self.place(Operand::Lse, Slot::Lse, shader!("lse_buffer"), shader!("lse_arena"));
        } else {
            self.files.push(shader!("lse_none"));
        }
    }

    pub fn scores(&mut self, home: Operand) {
        self.place(home, Slot::Scores, shader!("scores_buffer"), shader!("scores_arena"));
    }

    pub fn weights(&mut self, home: Operand) {
        self.place(home, Slot::Weights, shader!("weights_buffer"), shader!("weights_arena"));
    }

    /// Where a workgroup's rows go: to scratch if others have more of their keys.
    pub fn output(&mut self, variant: &Variant) {
        self.sequences();
        self.files.push(shader!("place"));
        if variant.splits > 1 {
            self.file(shader!("scratch"), Slot::Scratch);
            self.files.push(shader!("output_partial"));
            return;
        }
        let slot = if self.problem.is_arena() { Slot::Arena } else { Slot::O };
        match variant.method {
            // `softmax` has already written the LSE.
            Method::Staged => self.file(shader!("output_mixed"), slot),
            Method::Flash => {
                self.tables(&[Operand::Sinks]);
                self.sinks();
                self.lse();
                self.file(shader!("output_final"), slot);
            }
        }
    }
}
