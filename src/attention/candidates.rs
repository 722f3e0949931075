//! Choices worth measuring for a problem.

use crate::kernel::{Blocks, flash_tiles, matrix_tiles};
use crate::{Attention, Choice, Error, Method, Problem, Tile};

impl Attention {
    /// Choices that compute a problem on this device, each in another way, the planner's own first: of
    /// every method the tiles of its table that have a use for the problem's rows and keys, and those
    /// beside the one the planner would take. Compiles them all, which may take seconds.
    ///
    /// # Errors
    /// As [`Attention::plan`].
    pub fn candidates(&self, problem: &Problem) -> Result<Vec<Choice>, Error> {
        let mut seen = vec![self.plan(problem)?.describe()];
        let mut candidates = vec![Choice::default()];
        for choice in self.proposals(problem) {
            let Ok(plan) = self.plan_with(problem, choice) else { continue };
            let description = plan.describe();
            if !seen.contains(&description) {
                seen.push(description);
                candidates.push(choice);
            }
        }
        Ok(candidates)
    }

    /// Choices of a valid problem that may or may not be possible, the most promising first.
    pub(crate) fn proposals(&self, problem: &Problem) -> Vec<Choice> {
        let methods = Method::ALL.iter().copied().filter(|&method| self.allows(method));
        let mut all: Vec<Choice> = methods.map(Choice::method).collect();
        let useful = |tile: &Tile| {
            let fits = |n: u32, tokens: u32| n <= tokens.max(4).next_power_of_two();
            fits(tile.queries, problem.riding_rows()) && fits(tile.keys, problem.shape.kv_len)
        };
        if self.allows(Method::Broadcast) {
            // Subgroups' lanes: without them there are none.
            let lanes = self.lanes_of_subgroup().unwrap_or(0);
            for tile in Blocks::broadcast_tiles(lanes).filter(|tile| tile.queries > 0) {
                let choice = Choice::method(Method::Broadcast).with_tile(tile);
                all.extend([true, false].map(|yes| choice.with_keys_in_texture(yes)));
            }
        }
        if self.allows(Method::Matrix) && self.matrix().is_ok() {
            all.extend(matrix_tiles().map(|tile| Choice::method(Method::Matrix).with_tile(tile)));
        }
        if self.allows(Method::Flash) {
            let planned = Blocks::flash(problem, None, self.has_f16(), self.limits());
            let beside = planned.map(|blocks| beside(blocks.tile())).unwrap_or_default();
            let beside =
                beside.into_iter().filter(|tile| flash_tiles().all(|other| other != *tile));
            all.extend(flash_tiles().chain(beside).map(Choice::tile));
        }
        all.retain(|choice| choice.tile.as_ref().is_none_or(useful));
        all.retain(|choice| choice.tile.is_none_or(|tile| tile.validate().is_ok()));
        all
    }
}

/// Twice or half as many queries or keys.
fn beside(Tile { queries, keys }: Tile) -> Vec<Tile> {
    vec![
        Tile { queries, keys: 2 * keys },
        Tile { queries, keys: keys / 2 },
        Tile { queries: 2 * queries, keys },
        Tile { queries: queries / 2, keys },
    ]
}
