//! Reading RDNA machine code: what the loops that do the work are made of.

/// Instructions of the blocks of code that are mostly multiply-adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Multiply-adds of one lane; packed and dot-product instructions count as two, matrix ones as one.
    pub multiply_adds: u32,
    /// Loads from workgroup memory, buffers and textures, of any width.
    pub loads: u32,
    pub instructions: u32,
}

impl Counts {
    fn add(self, other: Counts) -> Counts {
        Counts {
            multiply_adds: self.multiply_adds + other.multiply_adds,
            loads: self.loads + other.loads,
            instructions: self.instructions + other.instructions,
        }
    }
}

/// A block counts if it has at least so many multiply-adds, and half of its instructions are: the rest
/// is addresses, softmax, and the loop for values that are not finite.
const DENSE: u32 = 32;
const DENSE_SHARE: [u32; 2] = [1, 2];

/// Of all dense blocks of a program.
pub fn dense(assembly: &str) -> Counts {
    let mut all = Counts::default();
    let mut block = Counts::default();
    for line in assembly.lines().chain(["BB:"]) {
        let line = line.trim();
        if line.starts_with("BB") && line.contains(':') {
            let [share, of] = DENSE_SHARE;
            let mostly = of * block.multiply_adds >= share * block.instructions;
            if block.multiply_adds >= DENSE && mostly {
                all = all.add(block);
            }
            block = Counts::default();
            continue;
        }
        // Dual instructions: `v_dual_fmac_f32 .. :: v_dual_fmac_f32 ..`, both halves count.
        let names = line.split("::").filter_map(|half| half.split_whitespace().next());
        block = names.fold(block, |block, name| block.add(of(name)));
    }
    all
}

fn of(name: &str) -> Counts {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if !starts(&["v_", "s_", "ds_", "buffer_", "global_", "image_"]) {
        return Counts::default();
    }
    let plain = name.trim_start_matches("v_dual_").trim_start_matches("v_");
    let multiply_adds = match plain {
        _ if plain.starts_with("pk_fma_f") || plain.starts_with("dot2") => 2,
        _ if plain.starts_with("fma") && plain.contains("_f") => 1,
        _ if plain.starts_with("mad_") && plain.contains("_f") => 1,
        _ if plain.starts_with("mac_f") || plain.starts_with("wmma") => 1,
        _ => 0,
    };
    let loads = starts(&["ds_read", "ds_load", "buffer_load", "global_load", "image_load"]);
    Counts { multiply_adds, loads: u32::from(loads), instructions: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dense_blocks_count() {
        let fma = "\tv_fmac_f32_e32 v1, v2, v3 ; 00\n".repeat(30);
        let dual = "\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6\n";
        let rest =
            "\tds_read_b128 v[1:4], v0\n\ts_add_u32 s1, s2, s3\n\tv_mad_u32_u24 v1, v2, v3, v4\n";
        let text = format!("BB0:\n{fma}{dual}{rest}BB1:\n{fma}BB2:\n");
        let counts = Counts { multiply_adds: 32, loads: 1, instructions: 35 };
        assert_eq!(dense(&text), counts);
        assert_eq!(dense(""), Counts::default());
    }
}
