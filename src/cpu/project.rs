//! Projection of tokens, in f64.

use super::rows::each;
use crate::project::Rows;
use crate::{Error, Operand, Projection, ProjectionInputs};

/// Y = X W + b (+ residual), `[tokens, output]`, summed in f64 and rounded once. Laid out as the
/// projection says; elements that its rows skip are 0.
///
/// # Errors
/// What [`Projection::validate`] finds, and [`Error::Length`], [`Error::Missing`] or
/// [`Error::Unexpected`] for slices that do not fit.
pub fn project(projection: &Projection, inputs: ProjectionInputs<'_>) -> Result<Vec<f32>, Error> {
    projection.validate()?;
    inputs.check(projection)?;
    let (tokens, _, output) = projection.sizes();
    let mut y = vec![0.0; projection.elements(Operand::Y) as usize];
    let first = |operand: Operand, row: u32| {
        let Rows { offset, stride } = projection.rows_of(operand);
        (u64::from(offset) + u64::from(row) * u64::from(stride)) as usize
    };
    let row = |operand: Operand, of: &[f32], row: u32| -> Vec<f64> {
        let first = first(operand, row);
        of[first..first + output as usize].iter().copied().map(f64::from).collect()
    };
    let token = |at: u64| {
        let at = at as u32;
        let mut sum = vec![0.0f64; output as usize];
        if let Some(b) = inputs.b {
            sum = row(Operand::B, b, 0);
        }
        if let Some(residual) = inputs.residual {
            sum.iter_mut().zip(row(Operand::Residual, residual, at)).for_each(|(s, r)| *s += r);
        }
        for (dim, x) in
            (0u32..).zip(&inputs.x[first(Operand::X, at)..]).take(projection.sizes().1 as usize)
        {
            let w = &inputs.w[first(Operand::W, dim)..];
            sum.iter_mut().zip(w).for_each(|(s, w)| *s += f64::from(*x) * f64::from(*w));
        }
        sum
    };
    each(tokens.into(), token, |at, sum| {
        let to = &mut y[first(Operand::Y, at as u32)..];
        to.iter_mut().zip(&sum).for_each(|(to, from)| *to = *from as f32);
    });
    Ok(y)
}
