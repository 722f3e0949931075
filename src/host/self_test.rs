//! Whether the kernels compute on this device what they should.

use std::fmt;

use half::f16;

use super::Gpu;
use crate::{Align, Attention, Choice, Error, Inputs, Method, Problem, Scalar, Shape, cpu};

/// What each family of kernels made of a few tiny known cases.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SelfTest {
    /// A verdict on each method.
    pub verdicts: Vec<(Method, Verdict)>,
}

/// What came of a family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Right. The largest error in f32, or in f16 where that is all the method takes; the answers are
    /// near 1.
    Right(f32),
    /// Something else than the CPU reference: by how much, NaN included, and for which case.
    Wrong {
        /// The largest error.
        error: f32,
        /// The case.
        case: &'static str,
    },
    /// The device refused it, for instance to compile it.
    Failed(Error),
    /// Not for this device, or excluded already.
    Absent(Error),
}

/// Cases with tiles that are not full, and rows enough for two: with the band that every model has.
fn cases() -> [(&'static str, Problem); 3] {
    let of = |q_len, kv_len, dim| {
        let shape = Shape { q_len, ..Shape::self_attention(1, 2, q_len, dim) }.kv_len(kv_len);
        Problem::new(shape.kv_heads(1)).causal().align(Align::BottomRight)
    };
    [
        ("1 row, 70 keys", of(1, 70, 12)),
        ("37 rows, 45 keys", of(37, 45, 20)),
        ("37 rows, 45 keys, a bias", of(37, 45, 8).bias_shape(&[45])),
    ]
}

impl SelfTest {
    /// Methods that gave a wrong answer or none.
    pub fn failed(&self) -> impl Iterator<Item = Method> {
        let failed =
            |verdict: &Verdict| matches!(verdict, Verdict::Wrong { .. } | Verdict::Failed(_));
        self.verdicts.iter().filter(move |(_, verdict)| failed(verdict)).map(|(method, _)| *method)
    }

    /// The same planner without the methods that failed.
    pub fn apply(&self, attention: Attention) -> Attention {
        self.failed().fold(attention, Attention::without)
    }
}

impl Gpu {
    /// Runs a few tiny known cases, f32 and f16, through every family of kernels and compares with the
    /// CPU reference. Cheap insurance when a program starts: it compiles a dozen small kernels, or
    /// finds them in the driver's cache.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. What a family does wrong is in the report.
    #[cfg(not(target_family = "wasm"))]
    pub fn self_test(&self) -> Result<SelfTest, Error> {
        pollster::block_on(self.self_test_async())
    }

    /// As `Gpu::self_test`, for async programs and browsers.
    ///
    /// # Errors
    /// As `Gpu::self_test`.
    pub async fn self_test_async(&self) -> Result<SelfTest, Error> {
        let mut report = SelfTest::default();
        for &method in Method::ALL {
            let verdict = match self.verdict(method).await {
                Ok(worst) => Verdict::Right(worst),
                Err(Fault::Wrong { error, case }) => Verdict::Wrong { error, case },
                Err(Fault::Error(error @ Error::DeviceLost(_))) => return Err(error),
                Err(Fault::Error(error @ (Error::Limit { .. } | Error::Excluded { .. }))) => {
                    Verdict::Absent(error)
                }
                Err(Fault::Error(error)) => Verdict::Failed(error),
            };
            report.verdicts.push((method, verdict));
        }
        Ok(report)
    }

    /// The same device without the families that fail their self-test, and the report.
    ///
    /// # Errors
    /// As `Gpu::self_test`.
    #[cfg(not(target_family = "wasm"))]
    pub fn checked(self) -> Result<(Gpu, SelfTest), Error> {
        let report = self.self_test()?;
        let attention = report.apply(self.attention.clone());
        Ok((self.with_attention(attention), report))
    }

    /// The largest error in f32, or in f16 where that is all the method takes, if every answer is right.
    async fn verdict(&self, method: Method) -> Result<f32, Fault> {
        let mut worst = 0f32;
        for (case, problem) in cases() {
            let single = self.error::<f32>(method, case, &problem, 1e-4).await;
            let half = self.error::<f16>(method, case, &problem, 4e-3).await?;
            worst = worst.max(match single {
                // Matrix units take nothing else.
                Err(Fault::Error(Error::Limit { .. })) => half,
                single => single?,
            });
        }
        Ok(worst)
    }

    /// The error of a case's answer, if it is within the tolerance.
    async fn error<T: Scalar>(
        &self,
        method: Method,
        case: &'static str,
        problem: &Problem,
        tolerance: f32,
    ) -> Result<f32, Fault> {
        use crate::Operand::{Bias, K, Q, V};
        let [q, k, v] =
            [Q, K, V].map(|operand| waves::<T>(problem.elements(operand), operand as u32));
        let bias = waves::<f32>(problem.elements(Bias), Bias as u32);
        let inputs = Inputs::new(&q, &k, &v);
        let inputs = if bias.is_empty() { inputs } else { inputs.bias(&bias) };
        let want = cpu::attention(problem, inputs)?;
        let got = self.attention_async(problem, inputs, Choice::method(method)).await?;
        let errors =
            got.o.iter().zip(&want.o).map(|(got, want)| (got.to_f64() - want.to_f64()).abs());
        // `f64::max` would lose a NaN.
        let error = errors.fold(
            0.0,
            |most: f64, error| if error > most || error.is_nan() { error } else { most },
        );
        let error = error as f32;
        if error <= tolerance { Ok(error) } else { Err(Fault::Wrong { error, case }) }
    }
}

enum Fault {
    Wrong { error: f32, case: &'static str },
    Error(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Error(error)
    }
}

/// Numbers between -2 and 2 without a pattern that a wrong index would fit.
fn waves<T: Scalar>(count: u64, seed: u32) -> Vec<T> {
    let at = |i: u64| 2.0 * (1.0 + 0.7 * (i as f64) * (1.0 + 0.1 * f64::from(seed))).sin();
    (0..count).map(|i| T::from_f64(at(i))).collect()
}

impl fmt::Display for SelfTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (method, verdict) in &self.verdicts {
            write!(f, "{method:?}: ")?;
            match verdict {
                Verdict::Right(worst) => writeln!(f, "right, largest error {worst:.1e}")?,
                Verdict::Wrong { error, case } => writeln!(f, "WRONG by {error:.1e} ({case})")?,
                Verdict::Failed(error) => writeln!(f, "FAILED: {error}")?,
                Verdict::Absent(error) => writeln!(f, "not here: {error}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that computes nothing: every family is found out, and none is used.
    #[test]
    fn a_device_that_is_wrong() {
        let (device, queue) = wgpu::Device::noop(&Default::default());
        let (gpu, report) = Gpu::from_device(device, queue).checked().expect("a report");
        let failed: Vec<_> = report.failed().collect();
        assert_eq!(failed, [Method::Staged, Method::Flash, Method::Decode], "{report}");
        let problem = Problem::new(Shape::self_attention(1, 2, 5, 4));
        let planned = gpu.planner().plan(&problem).map(|plan| plan.method());
        assert_eq!(planned, Err(Error::Excluded { method: Method::Flash }));
    }

    /// A report with one family that fails: the next one is planned, by hand it is refused.
    #[test]
    fn a_family_that_fails_is_not_used() {
        let (device, _queue) = wgpu::Device::noop(&Default::default());
        let problem = Problem::new(Shape::self_attention(1, 2, 5, 4));
        let wrong = |method| (method, Verdict::Wrong { error: f32::NAN, case: "planted" });
        for (failing, planned) in [
            (vec![], Ok(Method::Flash)),
            (vec![Method::Decode], Ok(Method::Flash)),
            // No subgroups here, so no `broadcast`.
            (vec![Method::Flash], Ok(Method::Decode)),
            (vec![Method::Flash, Method::Decode], Ok(Method::Staged)),
            (
                vec![Method::Flash, Method::Decode, Method::Staged],
                Err(Error::Excluded { method: Method::Flash }),
            ),
        ] {
            let verdicts = failing.iter().copied().map(wrong).collect();
            let attention = SelfTest { verdicts }.apply(Attention::new(&device));
            let plan = |choice| attention.plan_with(&problem, choice).map(|plan| plan.method());
            assert_eq!(plan(Choice::default()), planned, "{failing:?}");
            for method in failing {
                assert_eq!(plan(Choice::method(method)), Err(Error::Excluded { method }));
            }
        }
    }
}
