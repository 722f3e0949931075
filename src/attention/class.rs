//! Classes of problems that the same kernel suits best.

use std::fmt;

use crate::{Element, Error, Operand, Pool, Problem};

/// What of a problem decides which kernel is best, and nothing else: types and dims as they are, numbers
/// of rows, keys and heads rounded up to powers of two.
///
/// Strides, scale, softcap and slopes change the work of every kernel alike. The text is one line,
/// for logs and files:
///
/// ```
/// use wgpu_attention::{Class, Problem, Shape};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// let class = |tokens| Class::of(&Problem::new(Shape::self_attention(1, 8, tokens, 64)).causal());
/// assert_eq!(class(600)?, class(1024)?);
/// assert_ne!(class(600)?, class(1025)?);
/// assert_eq!(class(600)?.to_string(), "q=f32 k=f32 dims=64x64 rows=1024 keys=1024 groups=8 causal");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// Types of Q and O, and of K and V.
    elements: [Element; 2],
    /// head_dim and value_dim.
    dims: [u32; 2],
    /// Query rows that share keys and tiles, keys, and how often there are such.
    counts: [u32; 3],
    reach: Reach,
    cache: Option<Source>,
    /// As in `FLAGS`.
    flags: [bool; 4],
}

/// Which keys a query's band leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reach {
    All,
    /// About half of them.
    OneSided,
    /// So many, rounded up to a power of two.
    Window(u32),
}

/// Where a cache keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Source {
    paged: bool,
    pool: Pool,
}

const FLAGS: [&str; 4] = ["bias", "mask", "packed", "stored"];

impl Class {
    /// The class of a problem.
    ///
    /// # Errors
    /// What [`Problem::validate`] finds.
    pub fn of(problem: &Problem) -> Result<Class, Error> {
        problem.validate().map(|()| Class::of_valid(problem))
    }

    /// The same, of a problem that was validated.
    pub(crate) fn of_valid(problem: &Problem) -> Class {
        let (shape, outputs) = (problem.shape(), problem.outputs());
        let heads = u64::from(shape.q_heads / problem.row_group().max(1)) * u64::from(shape.batch);
        let round = |n: u64| n.min(1 << 31).next_power_of_two() as u32;
        let reach = match (problem.band_value().left, problem.band_value().right) {
            (None, None) => Reach::All,
            (Some(left), Some(right)) => {
                Reach::Window(round(u64::from(left) + u64::from(right) + 1))
            }
            _ => Reach::OneSided,
        };
        let source =
            |cache: &crate::CacheShape| Source { paged: cache.paging.is_some(), pool: cache.pool };
        Class {
            elements: [Operand::Q, Operand::K].map(|operand| problem.element_of(operand)),
            dims: [shape.head_dim, shape.value_dim],
            counts: [round(problem.riding_rows().into()), round(shape.kv_len.into()), round(heads)],
            reach,
            cache: problem.cache().map(source),
            flags: [
                problem.has_bias(),
                problem.has_mask(),
                problem.sequences().is_some(),
                outputs.scores || outputs.weights,
            ],
        }
    }

    /// Of its text; `None` for any other text.
    #[cfg(all(feature = "host", not(target_family = "wasm")))]
    pub(crate) fn parse(text: &str) -> Option<Class> {
        let mut words = text.split(' ');
        let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        let elements = [element(value("q")?)?, element(value("k")?)?];
        let (head_dim, value_dim) = value("dims")?.split_once('x')?;
        let dims = [head_dim.parse().ok()?, value_dim.parse().ok()?];
        let mut count = |name| value(name)?.parse().ok().filter(|n: &u32| n.is_power_of_two());
        let counts = [count("rows")?, count("keys")?, count("groups")?];
        let reach = Reach::All;
        let mut class = Class { elements, dims, counts, reach, cache: None, flags: [false; 4] };
        for word in words {
            class.add(word)?;
        }
        // One text a class: no word twice, in another order, or with a leading zero.
        (class.to_string() == text).then_some(class)
    }

    /// What a word says of it.
    #[cfg(all(feature = "host", not(target_family = "wasm")))]
    fn add(&mut self, word: &str) -> Option<()> {
        if let Some(at) = FLAGS.iter().position(|&flag| flag == word) {
            self.flags[at] = true;
        } else if word == "causal" {
            self.reach = Reach::OneSided;
        } else if let Some(width) = word.strip_prefix("window=") {
            self.reach = Reach::Window(width.parse().ok().filter(|n: &u32| n.is_power_of_two())?);
        } else {
            let cache = word.strip_prefix("cache=")?;
            let pool = cache.strip_prefix("paged-").unwrap_or(cache);
            let pools = [Pool::Auto, Pool::Buffer, Pool::Texture];
            let pool = pools.into_iter().find(|&known| lower(&known) == pool)?;
            self.cache = Some(Source { paged: cache.starts_with("paged-"), pool });
        }
        Some(())
    }
}

#[cfg(all(feature = "host", not(target_family = "wasm")))]
fn element(text: &str) -> Option<Element> {
    let all = [Element::F32, Element::F16, Element::Bf16, Element::Int8];
    all.into_iter().find(|element| lower(element) == text)
}

fn lower(name: &impl fmt::Debug) -> String {
    format!("{name:?}").to_lowercase()
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [queries, keys] = self.elements.map(|element| lower(&element));
        write!(f, "q={queries} k={keys} dims={}x{}", self.dims[0], self.dims[1])?;
        let [rows, keys, groups] = self.counts;
        write!(f, " rows={rows} keys={keys} groups={groups}")?;
        match self.reach {
            Reach::All => {}
            Reach::OneSided => write!(f, " causal")?,
            Reach::Window(width) => write!(f, " window={width}")?,
        }
        if let Some(Source { paged, pool }) = self.cache {
            write!(f, " cache={}{}", if paged { "paged-" } else { "" }, lower(&pool))?;
        }
        let flags = FLAGS.iter().zip(self.flags).filter(|(_, set)| *set);
        flags.into_iter().try_for_each(|(flag, _)| write!(f, " {flag}"))
    }
}

#[cfg(all(test, feature = "host"))]
mod tests {
    use super::*;
    use crate::{Align, Band, CacheShape, Group, Shape};

    #[test]
    fn every_text_is_read_back() {
        let plain = || Problem::new(Shape::self_attention(2, 6, 100, 64).value_dim(80));
        let cache = CacheShape::new(3, 2, 1000, 128).element(Element::Int8);
        let problems = [
            plain(),
            plain().causal(),
            plain().band(Band { left: Some(99), right: Some(0) }).align(Align::TopLeft),
            plain().bias_shape(&[100]).mask_shape(&[100, 100]).scores(),
            plain().element(Group::Queries, Element::F16).element(Group::Keys, Element::Bf16),
            Problem::new(Shape::self_attention(1, 2, 50, 8)).packed(4),
            cache.problem(8, 1),
            cache.paged(16, 500).pool(Pool::Buffer).problem(8, 4),
            Problem::new(Shape::self_attention(1, 1, 0, 1)),
        ];
        let mut classes: Vec<Class> = Vec::new();
        for problem in &problems {
            let class = Class::of(problem).expect("a valid problem");
            assert_eq!(Class::parse(&class.to_string()), Some(class), "{class}");
            assert!(!classes.contains(&class), "{class}");
            classes.push(class);
        }
    }

    #[test]
    fn other_texts_are_none() {
        let good = "q=f32 k=f32 dims=64x64 rows=1024 keys=1024 groups=8 causal";
        assert!(Class::parse(good).is_some());
        for (from, to) in [
            ("f32 ", "f31 "),
            ("64x64", "64"),
            ("64x64", "064x64"),
            ("64x64", "64x4294967296"),
            ("1024", "1000"),
            ("groups=8", "groups=-8"),
            ("causal", "causal causal"),
            ("causal", "mask causal"),
            ("causal", "window=NaN"),
            ("causal", "cache=ram"),
            ("causal", ""),
            (" ", "  "),
        ] {
            assert_eq!(Class::parse(&good.replacen(from, to, 1)), None, "{to}");
        }
        assert_eq!(Class::parse(""), None);
    }
}
