//! Which kernels compute a problem where some are excluded.

use super::method::method;
use crate::kernel::Blocks;
use crate::{Attention, Choice, Error, Method, Problem};

/// The method of a choice, or the planner's; if that is excluded, the first one left.
pub(super) fn allowed(
    attention: &Attention,
    problem: &Problem,
    choice: Choice,
) -> Result<Method, Error> {
    let wanted = method(attention, problem, choice)?;
    let limits = attention.limits();
    let fits = |method: Method| match method {
        Method::Flash => Blocks::flash(problem, None, attention.has_f16(), limits).is_ok(),
        Method::Broadcast => attention.lanes_of_subgroup().is_ok(),
        Method::Decode => Blocks::decode(problem, attention.lanes(), limits).is_ok(),
        // Without keys there is nothing to store.
        Method::Staged => problem.shape.kv_len > 0,
        // Where it fits and pays, it was wanted.
        Method::Matrix => false,
    };
    // Only `staged` forms scores and weights, and who asks for a method means it.
    let left: &[Method] = match (wanted, choice.method, choice.tile) {
        (Method::Staged, ..) | (_, Some(_), _) | (_, _, Some(_)) => &[],
        _ => &[Method::Flash, Method::Broadcast, Method::Decode, Method::Staged],
    };
    let mut all = [wanted].into_iter().chain(left.iter().copied().filter(|&other| fits(other)));
    let found = all.find(|&method| attention.allows(method));
    match (found.ok_or(Error::Excluded { method: wanted })?, choice.tile) {
        (Method::Staged | Method::Decode, Some(tile)) => {
            let got = tile.queries.into();
            Err(Error::Size { what: "tile", need: "none, with this method", got })
        }
        (method, _) => Ok(method),
    }
}
