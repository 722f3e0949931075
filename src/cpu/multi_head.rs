//! The whole attention layer, stage by stage.

use super::{attention, project};
use crate::multi_head::Stages;
use crate::{Error, Inputs, LayerInputs, LayerOutput, MultiHead, ProjectionInputs};

/// y = concat over heads of attention(x W_Q, c W_K, c W_V) W_O: each stage by its definition in
/// f64, its result rounded to f32.
///
/// # Errors
/// What [`MultiHead::validate`] finds, and [`Error::Length`], [`Error::Missing`] or
/// [`Error::Unexpected`] for slices that do not fit.
pub fn multi_head(layer: &MultiHead, inputs: LayerInputs<'_>) -> Result<LayerOutput, Error> {
    layer.validate()?;
    inputs.check(layer)?;
    let Stages { projections, problem, .. } = layer.stages()?;
    let context = inputs.context.unwrap_or(inputs.x);
    let stage = |at: usize, x| {
        let stage = ProjectionInputs::new(x, inputs.weights[at]);
        inputs.biases.map_or(stage, |biases| stage.bias(biases[at]))
    };
    // Each lands where the layer keeps it, so the attention reads it through the same layouts.
    let q = project(&projections[0], stage(0, inputs.x))?;
    let k = project(&projections[1], stage(1, context))?;
    let v = project(&projections[2], stage(2, context))?;
    let heads = Inputs { extras: inputs.extras, ..Inputs::new(&q, &k, &v) };
    let mixed = attention(&problem, heads)?;
    let last = stage(3, &mixed.o);
    let y = project(
        &projections[3],
        if layer.has_residual() { last.residual(inputs.x) } else { last },
    )?;
    Ok(LayerOutput { y, lse: mixed.lse, scores: mixed.scores, weights: mixed.weights })
}
