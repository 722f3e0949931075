//! The self-test on real adapters. Failures are planted on a device that computes nothing, beside the
//! code.

use wgpu_attention::{Error, Method, SelfTest, Verdict};

use crate::support::{default_limits_gpu, gpu};

#[test]
fn every_family_is_right() {
    let (_, report) = gpu().clone().checked().expect("a report");
    println!("{report}");
    assert_eq!(report.verdicts.len(), Method::ALL.len());
    assert_eq!(report.failed().count(), 0, "{report}");
    for method in [Method::Staged, Method::Flash, Method::Decode] {
        assert!(matches!(verdict(&report, method), Verdict::Right(_)), "{method:?}");
    }
}

/// What was excluded before stays out, on a device without subgroups.
#[test]
fn what_is_excluded_is_absent() {
    let gpu = default_limits_gpu().clone();
    let planner = gpu.planner().clone().without(Method::Flash).without(Method::Staged);
    let (_, report) = gpu.with_attention(planner).checked().expect("a report");
    for method in [Method::Flash, Method::Staged] {
        let want = Verdict::Absent(Error::Excluded { method });
        assert_eq!(*verdict(&report, method), want);
    }
    assert!(matches!(verdict(&report, Method::Broadcast), Verdict::Absent(Error::Limit { .. })));
    assert!(matches!(verdict(&report, Method::Decode), Verdict::Right(_)));
}

fn verdict(report: &SelfTest, method: Method) -> &Verdict {
    &report.verdicts.iter().find(|verdict| verdict.0 == method).expect("a verdict").1
}
