//! The library's case table and its real model in a browser: WebGPU against the CPU reference, both
//! in one wasm.

use wasm_bindgen::prelude::*;
use wgpu_attention::{Choice, Error, Gpu, Output, Problem};
use wgpu_attention_support::answers::{Checked, EVERYTHING, FLASH, LSE, STAGED, Wants};
use wgpu_attention_support::sentence::{CLAIMS, Layer, Sentence, WORD};
use wgpu_attention_support::{cases, data};

/// The browser's device, with all limits of its adapter.
#[wasm_bindgen]
pub struct Browser {
    gpu: Gpu,
}

/// What came of a case: errors as parts of what is allowed; nothing if the device is too small.
#[wasm_bindgen(getter_with_clone)]
pub struct Outcome {
    pub name: String,
    pub staged: Option<f32>,
    pub fused: Option<f32>,
}

/// How many cases the table has.
#[wasm_bindgen]
pub fn count() -> usize {
    cases::all().len()
}

#[wasm_bindgen]
impl Browser {
    /// # Errors
    /// There is no WebGPU, or no adapter.
    pub async fn open() -> Result<Browser, JsError> {
        console_error_panic_hook::set_once();
        Ok(Browser { gpu: Gpu::new_async().await? })
    }

    /// Runs one case by both methods.
    ///
    /// # Errors
    /// Whatever goes wrong, but for the device's limits.
    pub async fn check(&self, index: usize) -> Result<Outcome, JsError> {
        let checked = Checked::new(cases::all().swap_remove(index));
        Ok(Outcome {
            name: checked.case.name.clone(),
            staged: self.error(&checked, STAGED, EVERYTHING).await?,
            fused: self.error(&checked, FLASH, LSE).await?,
        })
    }

    /// Runs the layers of a real model. Returns the largest error as a part of what is allowed.
    ///
    /// # Errors
    /// A claim of the lesson that does not hold; whatever else goes wrong.
    pub async fn model(&self) -> Result<f64, JsError> {
        let sentence = Sentence::load();
        let mut largest = 0.0f64;
        for layer in &sentence.layers {
            let staged = self.layer(layer, STAGED, Problem::weights).await?;
            let fused = self.layer(layer, FLASH, LSE).await?;
            let weights = staged.weights.unwrap_or_default();
            let parts =
                [(&staged.o, &layer.out), (&weights, &layer.weights), (&fused.o, &layer.out)];
            for (got, want) in parts {
                let most = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                let narrow: Vec<f32> = want.iter().map(|&x| x as f32).collect();
                let error = f64::from(data::max_error(got, &narrow)) / (1.5e-6 * most);
                largest = largest.max(error);
            }
        }
        for (number, head, token, percent) in CLAIMS {
            let output = self.layer(sentence.layer(number), STAGED, Problem::weights).await?;
            let weights = output.weights.unwrap_or_default();
            let (most, weight) = sentence.most(&weights, head);
            if (most, (100.0 * weight).round() as u32) != (token, percent) {
                let text = &sentence.text;
                return Err(JsError::new(&format!("{WORD}: {most}, {weight}, in: {text}")));
            }
        }
        Ok(largest)
    }
}

impl Browser {
    async fn error(
        &self,
        checked: &Checked,
        choice: Choice,
        wants: Wants,
    ) -> Result<Option<f32>, JsError> {
        let problem = wants(checked.case.problem.clone());
        match checked.run(&self.gpu, &problem, choice).await {
            Ok(got) => Ok(Some(checked.compare(&problem, &got))),
            Err(Error::Limit { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn layer(&self, layer: &Layer, choice: Choice, wants: Wants) -> Result<Output, JsError> {
        let problem = wants(Layer::problem());
        Ok(self.gpu.attention_async(&problem, layer.inputs(), choice).await?)
    }
}
