//! The self-test on real adapters. Failures are planted on a device that computes nothing, beside the
//! code.

use wgpu_attention::{Error, Method, Verdict};

use crate::support::{default_limits_gpu, gpu};

#[test]
fn every_family_is_right() {
    for gpu in [gpu(), default_limits_gpu()] {
        let (checked, report) = gpu.clone().checked().expect("a report");
        println!("{report}");
        assert_eq!(report.verdicts.len(), Method::ALL.len());
        assert_eq!(report.failed().count(), 0, "{report}");
        let verdict = |method| report.verdicts.iter().find(|v| v.0 == method).map(|v| v.1.clone());
        for method in [Method::Staged, Method::Flash, Method::Decode] {
            assert!(matches!(verdict(method), Some(Verdict::Right(_))), "{method:?}");
        }
        // What was excluded before stays out.
        let without = checked.planner().clone().without(Method::Decode);
        let report = checked.with_attention(without).self_test().expect("a report");
        let want = Verdict::Absent(Error::Excluded { method: Method::Decode });
        let got = report.verdicts.iter().find(|v| v.0 == Method::Decode);
        assert_eq!(got.map(|v| &v.1), Some(&want));
    }
}
