//! Where Q, K, V and O lie, and of which type they are.

use super::Parts;
use crate::kernel::{File, Slot, native_shader, shader};
use crate::{CacheShape, Element, Operand};

impl Parts<'_> {
    /// Rows and strides of Q, K, V and O are whole quads, in buffers of their own.
    pub fn in_quads(&self) -> bool {
        self.problem.is_quads() && !self.problem.is_arena()
    }

    /// Those of Q, K and V that are read.
    pub fn tensors(&mut self, read: &[Slot]) {
        if read.contains(&Slot::Q) {
            self.loaded_queries();
        }
        let keys = [Slot::K, Slot::V].map(|slot| read.contains(&slot));
        let cached = self.problem.cache().is_some();
        if keys.contains(&true) {
            match cached {
                true => self.cached_keys(),
                false => self.loaded_keys(keys),
            }
        }
        let own = |&slot: &Slot| if self.problem.is_arena() { Slot::Arena } else { slot };
        let bound = read.iter().filter(|slot| !(cached && matches!(slot, Slot::K | Slot::V)));
        self.slots.extend(bound.map(own));
    }

    /// Q where it is, K and V where `pack` has put them.
    pub fn packed_tensors(&mut self) {
        self.loaded_queries();
        self.pool_read();
        self.files.push(native_shader!("operand/keys_in_pack"));
        self.slots.push(if self.problem.is_arena() { Slot::Arena } else { Slot::Q });
    }

    /// Quads of Q.
    fn loaded_queries(&mut self) {
        self.queries(self.in_quads());
        if !self.in_quads() {
            self.files.extend([shader!("element/gather"), shader!("element/gather_queries")]);
        }
    }

    /// Quads of K and of V, if they are read.
    fn loaded_keys(&mut self, [k, v]: [bool; 2]) {
        self.keys(self.in_quads());
        self.files.push(shader!("operand/rows_strided"));
        if self.in_quads() {
            return;
        }
        self.files.push(shader!("element/gather"));
        if k {
            self.files.push(shader!("element/gather_keys"));
        }
        if v {
            self.files.push(shader!("element/gather_values"));
        }
    }

    /// The type of Q and O, and access to them.
    pub fn queries(&mut self, in_quads: bool) {
        let (element, native) = (self.problem.element_of(Operand::Q), self.native);
        self.element(element);
        self.files.push(match element {
            Element::F16 if native => shader!("operand/queries_native"),
            Element::F16 => shader!("operand/queries_f16"),
            Element::Bf16 => shader!("operand/queries_bf16"),
            _ => shader!("operand/queries_f32"),
        });
        match self.problem.is_arena() {
            true => {
                self.files.extend([shader!("operand/arena"), shader!("operand/queries_in_arena")])
            }
            false if in_quads => self.files.push(shader!("operand/queries_in_quads")),
            false => self.files.push(shader!("operand/queries_in_words")),
        }
    }

    /// Quads of O to where it is.
    pub fn scatter(&mut self, in_quads: bool) {
        if in_quads {
            return;
        }
        let element = self.problem.element_of(Operand::O);
        let words = element.bytes() == 4 || (element == Element::F16 && self.native);
        self.files.push(match words {
            true => shader!("element/scatter_words"),
            false => shader!("element/scatter_pairs"),
        });
    }

    /// The type of K and V, and access to them.
    pub fn keys(&mut self, in_quads: bool) {
        let (element, native) = (self.problem.element_of(Operand::K), self.native);
        self.element(element);
        self.files.push(match element {
            Element::F16 if native => shader!("operand/keys_native"),
            Element::F16 => shader!("operand/keys_f16"),
            Element::Bf16 => shader!("operand/keys_bf16"),
            _ => shader!("operand/keys_f32"),
        });
        match self.problem.is_arena() {
            true => self.files.extend([shader!("operand/arena"), shader!("operand/keys_in_arena")]),
            false if in_quads => self.files.push(shader!("operand/keys_in_quads")),
            false => self.files.push(shader!("operand/keys_in_words")),
        }
    }

    /// What reading or writing 16-bit elements in words takes.
    fn element(&mut self, element: Element) {
        match element {
            Element::F16 if self.native => self.names_f16 = true,
            Element::F16 => self.files.push(shader!("element/element_f16")),
            Element::Bf16 => self.files.push(shader!("element/element_bf16")),
            _ => {}
        }
    }

    /// K and V of a cache.
    fn cached_keys(&mut self) {
        let Some(cache) = self.problem.cache() else { return };
        self.cache(shader!("cache/words_read"), Slot::Words);
        self.texels(cache);
        self.pool_read();
        self.files.push(shader!("cache/keys_in_cache"));
    }

    pub fn pool_read(&mut self) {
        match self.pool_texture {
            true => self.file(shader!("cache/pool_texture"), Slot::PoolTexture),
            false => self.file(shader!("cache/pool_buffer"), Slot::Pool),
        }
    }

    pub fn pool_write(&mut self) {
        match self.pool_texture {
            true => self.file(shader!("cache/pool_texture_write"), Slot::PoolTextureOut),
            false => self.file(shader!("cache/pool_buffer_write"), Slot::PoolOut),
        }
    }

    pub fn rotary(&mut self, turns: bool) {
        match turns {
            true => self.file(shader!("cache/rotary_tables"), Slot::Rotary),
            false => self.files.push(shader!("cache/rotary_none")),
        }
    }

    /// A cache's own tables.
    pub fn cache(&mut self, words: &'static File, slot: Slot) {
        self.file(shader!("cache/cache"), Slot::Cache);
        self.file(words, slot);
    }

    /// What a cache's texels hold, and in which pages.
    pub fn texels(&mut self, cache: &CacheShape) {
        match cache.element {
            Element::F32 => self.files.push(shader!("cache/texel_f32")),
            Element::F16 => {
                self.files.extend([shader!("element/element_f16"), shader!("cache/texel_f16")])
            }
            Element::Bf16 => {
                self.files.extend([shader!("element/element_bf16"), shader!("cache/texel_bf16")])
            }
            Element::Int8 => self.files.push(shader!("cache/texel_int8")),
        }
        self.scales(cache);
        self.files.push(match cache.paging {
            Some(_) => shader!("cache/pages_table"),
            None => shader!("cache/pages_contiguous"),
        });
    }

    /// Whether its rows have scales.
    pub fn scales(&mut self, cache: &CacheShape) {
        self.files.push(match cache.element {
            Element::Int8 => shader!("cache/scales_words"),
            _ => shader!("cache/scales_none"),
        });
    }
}
