//! Which files go before a kernel's own, and what they bind.

mod rows;

use super::{Constant, File, Slot, Variant, compose, native_shader, shader};
use crate::{Method, Operand, Problem};

/// The files and slots of a module in the making.
pub(super) struct Parts<'a> {
    problem: &'a Problem,
    /// f16 is read as the type, not out of words.
    native: bool,
    pub files: Vec<&'static File>,
    pub slots: Vec<Slot>,
    /// Some file names the type f16.
    names_f16: bool,
    /// And the types of matrices.
    names_matrices: bool,
    pool_texture: bool,
}

impl Parts<'_> {
    pub fn new(problem: &Problem, native: bool, pool_texture: bool) -> Parts<'_> {
        let files = vec![shader!("problem/strides"), shader!("problem/problem")];
        let slots = vec![Slot::Problem];
        Parts {
            problem,
            native,
            files,
            slots,
            names_f16: false,
            names_matrices: false,
            pool_texture,
        }
    }

    /// For a kernel that does not read the problem's uniform.
    pub fn forget_problem(&mut self) {
        self.files.retain(|&file| file != shader!("problem/problem"));
        self.slots.retain(|&slot| slot != Slot::Problem);
    }

    /// The module, with each file once, and the slots in order.
    pub fn finish(mut self, constants: &[(Constant, u32)]) -> (String, Vec<Slot>) {
        self.slots.sort_unstable();
        self.slots.dedup();
        let mut seen = Vec::new();
        self.files.retain(|file| {
            let new = !seen.contains(file);
            seen.push(*file);
            new
        });
        // Not even a device that has the type may see its name without this line.
        let enable = match (self.names_matrices, self.names_f16) {
            (true, _) => "enable f16;\nenable wgpu_cooperative_matrix;\n",
            (false, true) => "enable f16;\n",
            (false, false) => "",
        };
        (compose(enable, constants, &self.files), self.slots)
    }

    pub fn file(&mut self, file: &'static File, slot: Slot) {
        self.files.push(file);
        self.slots.push(slot);
    }

    /// `buffer` or `arena`, depending on where a tensor lies.
    fn place(&mut self, home: Operand, slot: Slot, buffer: &'static File, arena: &'static File) {
        if self.problem.is_arena() && home != Operand::Scratch {
            self.files.push(shader!("operand/arena"));
            self.file(arena, Slot::Arena);
        } else {
            self.file(buffer, slot);
        }
    }

    pub fn bias(&mut self) {
        if self.problem.has_bias() {
            self.place(
                Operand::Bias,
                Slot::Bias,
                shader!("operand/bias_buffer"),
                shader!("operand/bias_arena"),
            );
        } else {
            self.files.push(shader!("operand/bias_none"));
        }
    }

    pub fn mask(&mut self) {
        if self.problem.has_mask() {
            self.place(
                Operand::Mask,
                Slot::Mask,
                shader!("operand/mask_buffer"),
                shader!("operand/mask_arena"),
            );
        } else {
            self.files.push(shader!("operand/mask_none"));
        }
    }

    /// The buffer of small operands, if the kernel needs one of these.
    pub fn tables(&mut self, needed: &[Operand]) {
        if needed.iter().any(|&operand| self.problem.has_table(operand)) {
            self.file(shader!("problem/tables"), Slot::Tables);
        }
    }

    pub fn sequences(&mut self) {
        self.tables(&[Operand::QLens, Operand::KvLens, Operand::CuSeqlensQ]);
        self.file(shader!("problem/lengths"), Slot::Lengths);
        if self.problem.sequences().is_some() {
            self.files.push(shader!("problem/sequences_packed"));
            return;
        }
        let counts = [Operand::QLens, Operand::KvLens].iter().any(|&o| self.problem.has_table(o));
        self.files.push(match counts {
            true => shader!("problem/counts_tables"),
            false => shader!("problem/counts_same"),
        });
        if self.problem.cache().is_some() {
            self.cache(shader!("cache/words_read"), Slot::Words);
            self.files.push(shader!("problem/held_cached"));
        } else {
            self.files.push(shader!("problem/held_all"));
        }
        self.files.push(shader!("problem/sequences_each"));
    }

    pub fn final_score(&mut self) {
        self.tables(&[Operand::Slopes]);
        self.files.push(match self.problem.has_table(Operand::Slopes) {
            true => shader!("score/alibi_tables"),
            false => shader!("score/alibi_none"),
        });
        self.files.push(match self.problem.softcap_value() > 0.0 {
            true => shader!("score/softcap_tanh"),
            false => shader!("score/softcap_none"),
        });
        self.files.push(shader!("score/score"));
    }

    pub fn sinks(&mut self) {
        self.files.push(match self.problem.has_table(Operand::Sinks) {
            true => shader!("output/sinks_tables"),
            false => shader!("output/sinks_none"),
        });
    }

    pub fn lse(&mut self) {
        if self.problem.outputs().lse {
            self.place(
                Operand::Lse,
                Slot::Lse,
                shader!("output/lse_buffer"),
                shader!("output/lse_arena"),
            );
        } else {
            self.files.push(shader!("output/lse_none"));
        }
    }

    pub fn scores(&mut self, home: Operand) {
        self.place(
            home,
            Slot::Scores,
            shader!("output/scores_buffer"),
            shader!("output/scores_arena"),
        );
    }

    pub fn weights(&mut self, home: Operand) {
        self.place(
            home,
            Slot::Weights,
            shader!("output/weights_buffer"),
            shader!("output/weights_arena"),
        );
    }

    /// Matrices of so many rows.
    pub fn matrices(&mut self, size: u32) {
        self.names_matrices = true;
        self.files.push(match size {
            8 => native_shader!("tile/matrix_8"),
            _ => native_shader!("tile/matrix_16"),
        });
        self.files.push(native_shader!("tile/matrix_tile"));
    }

    /// Values that are not finite are kept from keys that are not seen.
    pub fn tame(&mut self) {
        self.files.push(match self.problem.hides_keys() {
            true => native_shader!("score/tame_finite"),
            false => native_shader!("score/tame_all"),
        });
    }

    /// What K and V are in workgroup memory.
    pub fn tile(&mut self, half: bool) {
        self.names_f16 |= half;
        self.files.push(match half {
            true => shader!("tile/tile_f16"),
            false => shader!("tile/tile_f32"),
        });
    }

    /// What every fused kernel does with a dot product, and with its rows.
    pub fn sweep(&mut self, variant: &Variant) {
        self.final_score();
        self.bias();
        self.mask();
        self.files.push(shader!("problem/span"));
        self.output(variant);
    }

    /// Where a workgroup's rows go: to scratch if others have more of their keys.
    pub fn output(&mut self, variant: &Variant) {
        self.sequences();
        self.files.push(shader!("problem/place"));
        match variant.method {
            Method::Staged => {}
            Method::Matrix => self.files.push(native_shader!("output/unit_one")),
            _ => self.files.push(shader!("output/unit_of_keys")),
        }
        if variant.splits > 1 {
            self.file(shader!("operand/scratch"), Slot::Scratch);
            self.files.push(shader!("output/output_partial"));
            return;
        }
        self.queries(self.in_quads());
        self.scatter(self.in_quads());
        let slot = if self.problem.is_arena() { Slot::Arena } else { Slot::O };
        match variant.method {
            // `softmax` has already written the LSE.
            Method::Staged => self.file(shader!("output/output_mixed"), slot),
            Method::Flash | Method::Broadcast | Method::Decode | Method::Matrix => {
                self.tables(&[Operand::Sinks]);
                self.sinks();
                self.lse();
                self.file(shader!("output/output_final"), slot);
            }
        }
    }
}
