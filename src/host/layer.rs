//! Projections and whole layers over host slices.

use super::Gpu;
use super::transfer::Resident;
use crate::{
    Choice, Element, Error, LayerInputs, LayerOutput, MultiHead, Operand, Projection,
    ProjectionInputs,
};

impl Gpu {
    /// The signature and the results of [`cpu::project`](crate::cpu::project), computed on the GPU.
    ///
    /// # Errors
    /// As [`cpu::project`](crate::cpu::project); [`Error::Limit`], [`Error::DeviceLost`],
    /// [`Error::Device`].
    #[cfg(not(target_family = "wasm"))]
    pub fn project(
        &self,
        projection: &Projection,
        inputs: ProjectionInputs<'_>,
    ) -> Result<Vec<f32>, Error> {
        pollster::block_on(self.project_async(projection, inputs))
    }

    /// As `Gpu::project`, for async programs and browsers.
    ///
    /// # Errors
    /// As `Gpu::project`.
    pub async fn project_async(
        &self,
        projection: &Projection,
        inputs: ProjectionInputs<'_>,
    ) -> Result<Vec<f32>, Error> {
        self.explained(self.apply(projection, inputs)).await
    }

    async fn apply(
        &self,
        projection: &Projection,
        inputs: ProjectionInputs<'_>,
    ) -> Result<Vec<f32>, Error> {
        projection.validate()?;
        inputs.check(projection)?;
        let plan = self.attention.plan_projection_async(projection).await?;
        let mut y = vec![0.0f32; projection.elements(Operand::Y) as usize];
        if y.is_empty() {
            return Ok(y);
        }
        let mut resident = Resident::new(self);
        for (operand, slice) in inputs.given() {
            if let Some(slice) = slice {
                let size = 4 * projection.elements(operand);
                resident.input(operand, bytemuck::cast_slice(slice), size)?;
            }
        }
        resident.memory(Operand::Y, 4 * y.len() as u64)?;
        let bound = plan.bind_async(resident.ready().await?).await?;
        let store = |_, bytes: &[u8]| bytemuck::cast_slice_mut(&mut y).copy_from_slice(bytes);
        resident.run(|encoder| bound.encode_in(encoder), store).await?;
        Ok(y)
    }

    /// The signature and the results of [`cpu::multi_head`](crate::cpu::multi_head), computed on
    /// the GPU in one submit.
    ///
    /// # Errors
    /// As [`cpu::multi_head`](crate::cpu::multi_head); [`Error::Limit`], [`Error::DeviceLost`],
    /// [`Error::Device`].
    #[cfg(not(target_family = "wasm"))]
    pub fn multi_head(
        &self,
        layer: &MultiHead,
        inputs: LayerInputs<'_>,
    ) -> Result<LayerOutput, Error> {
        pollster::block_on(self.multi_head_async(layer, inputs, Choice::default()))
    }

    /// As `Gpu::multi_head`, with the method of the attention by hand, for async programs and
    /// browsers.
    ///
    /// # Errors
    /// As `Gpu::multi_head`.
    pub async fn multi_head_async(
        &self,
        layer: &MultiHead,
        inputs: LayerInputs<'_>,
        choice: Choice,
    ) -> Result<LayerOutput, Error> {
        self.explained(self.run_layer(layer, inputs, choice)).await
    }

    async fn run_layer(
        &self,
        layer: &MultiHead,
        inputs: LayerInputs<'_>,
        choice: Choice,
    ) -> Result<LayerOutput, Error> {
        layer.validate()?;
        inputs.check(layer)?;
        let problem = layer.problem();
        let on_device = problem.on_device(Element::F32, Element::F32);
        let plan = layer.clone().with_problem(on_device.clone());
        let plan = self.attention.plan_multi_head_async(&plan, choice).await?;
        let mut output = LayerOutput::zeros(layer);
        if output.y.is_empty() {
            return Ok(output);
        }
        let size = |operand| 4 * layer.elements(operand);
        let mut resident = Resident::new(self);
        for (operand, slice) in inputs.given() {
            if let Some(slice) = slice {
                resident.input(operand, bytemuck::cast_slice(slice), size(operand))?;
            }
        }
        resident.extras(&on_device, problem, &inputs.extras)?;
        for operand in layer.operands().into_iter().filter(|o| o.is_written()) {
            resident.memory(operand, size(operand))?;
        }
        resident.memory(Operand::Projected, plan.projected_bytes())?;
        resident.memory(Operand::Scratch, plan.scratch_bytes())?;
        let bound = plan.bind_async(resident.ready().await?).await?;
        let store = |operand, bytes: &[u8]| {
            if let Some(part) = output.bytes_mut(operand) {
                part.copy_from_slice(&bytes[..part.len()]);
            }
        };
        resident.run(|encoder| bound.encode_in(encoder), store).await?;
        Ok(output)
    }
}
