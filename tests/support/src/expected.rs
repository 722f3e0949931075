//! How far a result is from the expected one, by the conventions in `README.md`.

/// What is expected of a call, rows in head-major order.
pub struct Expected {
    pub out: Option<Vec<f64>>,
    /// Also right, where f32 has another answer.
    pub out_f32: Option<Vec<f64>>,
    pub lse: Option<Vec<f64>>,
    pub value_dim: usize,
    /// Rows that must be NaN may be anything, as on a GPU.
    pub any_for_nan: bool,
}

/// The largest distance, and which element has it. Infinite where only one of the two is finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Far {
    pub by: f64,
    pub at: usize,
}

impl Expected {
    /// Of an output of the expected size. A row without keys must be 0.
    pub fn out(&self, got: &[f64]) -> Far {
        let Some(out) = &self.out else { return Far::default() };
        let width = self.value_dim.max(1);
        let row = |row: usize, got: &[f64]| {
            if self.any_for_nan && self.is_nan(row) {
                return Far::default();
            }
            let of = |all: &[f64]| far(got, &all[row * width..][..width]);
            let keyless = self.lse.as_ref().is_some_and(|lse| lse[row] == f64::NEG_INFINITY);
            let nearest = match &self.out_f32 {
                Some(either) => Far::nearer(of(out), of(either)),
                None => of(out),
            };
            match got.iter().position(|&x| x != 0.0) {
                Some(at) if keyless => Far { by: f64::INFINITY, at },
                _ => nearest,
            }
        };
        let rows = got.chunks(width).enumerate().map(|(at, got)| row(at, got).after(at * width));
        rows.fold(Far::default(), Far::further)
    }

    /// Of an LSE of the expected size. That of a row that must be NaN says nothing.
    pub fn lse(&self, got: &[f64]) -> Far {
        let Some(lse) = &self.lse else { return Far::default() };
        let rows = got.iter().zip(lse).enumerate().filter(|(row, _)| !self.is_nan(*row));
        let rows = rows.map(|(at, (&got, &want))| Far { by: apart(got, want), at });
        rows.fold(Far::default(), Far::further)
    }

    fn is_nan(&self, row: usize) -> bool {
        let width = self.value_dim.max(1);
        let out = self.out.as_ref().map(|out| &out[row * width..][..width]);
        out.is_some_and(|out| out.iter().any(|x| x.is_nan()))
    }
}

impl Far {
    fn further(self, other: Far) -> Far {
        if other.by > self.by { other } else { self }
    }

    fn nearer(self, other: Far) -> Far {
        if other.by < self.by { other } else { self }
    }

    fn after(self, elements: usize) -> Far {
        Far { at: elements + self.at, ..self }
    }
}

/// Of any two lists of one length.
pub fn far(got: &[f64], want: &[f64]) -> Far {
    let each = got.iter().zip(want).enumerate();
    let each = each.map(|(at, (&got, &want))| Far { by: apart(got, want), at });
    each.fold(Far::default(), Far::further)
}

fn apart(got: f64, want: f64) -> f64 {
    match got == want || (got.is_nan() && want.is_nan()) {
        true => 0.0,
        false if (got - want).is_finite() => (got - want).abs(),
        false => f64::INFINITY,
    }
}
