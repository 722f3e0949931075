//! How much there is of each operand.

use super::Problem;
use crate::{Element, Group, Operand};

impl Problem {
    /// Where a small operand lies in [`Operand::Tables`], in elements; `None` if this problem does
    /// not have it.
    pub fn table(&self, operand: Operand) -> Option<std::ops::Range<u64>> {
        let mut start = 0;
        for of in Operand::TABLES {
            let end = start + self.table_elements(of);
            if of == operand {
                return self.has_table(of).then_some(start..end);
            }
            start = end;
        }
        None
    }

    pub(crate) fn has_table(&self, operand: Operand) -> bool {
        let packed = matches!(operand, Operand::CuSeqlensQ | Operand::CuSeqlensKv);
        let at = Operand::TABLES.iter().position(|&o| o == operand);
        at.is_some_and(|at| self.tables[at]) || (packed && self.sequences.is_some())
    }

    fn table_elements(&self, operand: Operand) -> u64 {
        match operand {
            _ if !self.has_table(operand) => 0,
            Operand::QLens | Operand::KvLens => self.shape.batch.into(),
            Operand::Slopes | Operand::Sinks => self.shape.q_heads.into(),
            _ => u64::from(self.sequences.unwrap_or(0)) + 1,
        }
    }

    /// Elements an operand's buffer must have, its layout's offset included: numbers of its type,
    /// u32 words of a mask, tables and arena. 0 for an operand that this problem does not have,
    /// and for scratch, which is the plan's. What lies in [`Operand::Tables`] counts by itself.
    pub fn elements(&self, operand: Operand) -> u64 {
        let of = |o: Operand| u64::try_from(self.span(o).end()).unwrap_or(u64::MAX);
        match operand {
            Operand::Tables => Operand::TABLES.into_iter().map(|o| self.table_elements(o)).sum(),
            _ if Operand::TABLES.contains(&operand) => self.table_elements(operand),
            Operand::Arena if self.arena => {
                let homes = self.operands().into_iter().filter(|&o| o != Operand::Tables);
                homes.map(|o| self.bytes(o).div_ceil(4)).max().unwrap_or(0)
            }
            _ if self.operands().contains(&operand) => of(operand),
            _ => 0,
        }
    }

    /// Bytes an operand's buffer must have: [`Problem::elements`] times the size of one, rounded up
    /// to whole words.
    pub fn bytes(&self, operand: Operand) -> u64 {
        let unit = u64::from(self.element_of(operand).bytes());
        self.elements(operand).saturating_mul(unit).div_ceil(4).saturating_mul(4)
    }

    /// The storage type of an operand; words count as f32.
    pub(crate) fn element_of(&self, operand: Operand) -> Element {
        match operand {
            Operand::Q | Operand::O => self.elements[Group::Queries as usize],
            Operand::K | Operand::V => self.elements[Group::Keys as usize],
            _ => Element::F32,
        }
    }

    /// Q, K, V, O and what the problem has besides.
    pub(crate) fn operands(&self) -> Vec<Operand> {
        let mut all = vec![Operand::Q, Operand::O];
        let optional = [
            (self.cache.is_none(), Operand::K),
            (self.cache.is_none(), Operand::V),
            (self.bias.is_some(), Operand::Bias),
            (self.mask.is_some(), Operand::Mask),
            (Operand::TABLES.into_iter().any(|o| self.has_table(o)), Operand::Tables),
            (self.outputs.lse, Operand::Lse),
            (self.outputs.scores, Operand::Scores),
            (self.outputs.weights, Operand::Weights),
        ];
        all.extend(optional.into_iter().filter(|o| o.0).map(|o| o.1));
        all
    }
}
