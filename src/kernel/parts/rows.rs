//! Where Q, K, V and O lie, and of which type they are.

use super::Parts;
use crate::kernel::{File, Slot, native_shader, shader};
use crate::{CacheShape, Element, Operand};

impl Parts<'_> {
    pub fn tensors(&mut self, used: &[Slot]) {
        let in_quads = self.problem.is_quads() && !self.problem.is_arena();
        if self.problem.is_arena() {
            self.files.push(shader!("arena"));
        }
        self.queries(in_quads);
        let cached = self.problem.cache().is_some();
        if cached {
            self.cached_keys(used.iter().any(|slot| matches!(slot, Slot::K | Slot::V)));
        } else {
            self.keys(in_quads);
            self.files.push(shader!("rows_strided"));
        }
        let own = |&slot: &Slot| if self.problem.is_arena() { Slot::Arena } else { slot };
        let bound = used.iter().filter(|slot| !(cached && matches!(slot, Slot::K | Slot::V)));
        self.slots.extend(bound.map(own));
    }

    /// Q and O where they are, K and V where `pack` has put them.
    pub fn packed_tensors(&mut self) {
        if self.problem.is_arena() {
            self.files.push(shader!("arena"));
        }
        self.queries(self.problem.is_quads() && !self.problem.is_arena());
        self.pool_read();
        self.files.push(native_shader!("keys_in_pack"));
        self.slots.push(if self.problem.is_arena() { Slot::Arena } else { Slot::Q });
    }

    /// The type of Q and O, and access to them.
    pub fn queries(&mut self, in_quads: bool) {
        let (element, native) = (self.problem.element_of(Operand::Q), self.native);
        self.element(element);
        self.files.push(match element {
            Element::F16 if native => shader!("queries_native"),
            Element::F16 => shader!("queries_f16"),
            Element::Bf16 => shader!("queries_bf16"),
            _ => shader!("queries_f32"),
        });
        if in_quads {
            self.files.push(shader!("queries_in_quads"));
            return;
        }
        let words = element.bytes() == 4 || (element == Element::F16 && native);
        self.files.extend([
            shader!("gather"),
            shader!("gather_queries"),
            if words { shader!("scatter_words") } else { shader!("scatter_pairs") },
            match self.problem.is_arena() {
                true => shader!("queries_in_arena"),
                false => shader!("queries_in_words"),
            },
        ]);
    }

    /// The type of K and V, and access to them.
    pub fn keys(&mut self, in_quads: bool) {
        let (element, native) = (self.problem.element_of(Operand::K), self.native);
        self.element(element);
        self.files.push(match element {
            Element::F16 if native => shader!("keys_native"),
            Element::F16 => shader!("keys_f16"),
            Element::Bf16 => shader!("keys_bf16"),
            _ => shader!("keys_f32"),
        });
        if in_quads {
            self.files.push(shader!("keys_in_quads"));
            return;
        }
        self.files.extend([
            shader!("gather"),
            shader!("gather_keys"),
            match self.problem.is_arena() {
                true => shader!("keys_in_arena"),
                false => shader!("keys_in_words"),
            },
        ]);
    }

    /// What reading or writing 16-bit elements in words takes.
    fn element(&mut self, element: Element) {
        match element {
            Element::F16 if self.native => self.names_f16 = true,
            Element::F16 => self.files.push(shader!("element_f16")),
            Element::Bf16 => self.files.push(shader!("element_bf16")),
            _ => {}
        }
    }

    /// K and V of a cache, if they are read.
    fn cached_keys(&mut self, read: bool) {
        let Some(cache) = self.problem.cache() else { return };
        if read {
            self.cache(shader!("words_read"), Slot::Words);
            self.texels(cache);
            self.pool_read();
            self.files.push(shader!("keys_in_cache"));
        }
    }

    pub fn pool_read(&mut self) {
        match self.pool_texture {
            true => self.file(shader!("pool_texture"), Slot::PoolTexture),
            false => self.file(shader!("pool_buffer"), Slot::Pool),
        }
    }

    pub fn pool_write(&mut self) {
        match self.pool_texture {
            true => self.file(shader!("pool_texture_write"), Slot::PoolTextureOut),
            false => self.file(shader!("pool_buffer_write"), Slot::PoolOut),
        }
    }

    pub fn rotary(&mut self, turns: bool) {
        match turns {
            true => self.file(shader!("rotary_tables"), Slot::Rotary),
            false => self.files.push(shader!("rotary_none")),
        }
    }

    /// A cache's own tables.
    pub fn cache(&mut self, words: &'static File, slot: Slot) {
        self.file(shader!("cache"), Slot::Cache);
        self.file(words, slot);
    }

    /// What a cache's texels hold, and in which pages.
    pub fn texels(&mut self, cache: &CacheShape) {
        let element = match cache.element {
            Element::F16 => [shader!("element_f16"), shader!("texel_f16")],
            Element::Bf16 => [shader!("element_bf16"), shader!("texel_bf16")],
            Element::Int8 => [shader!("scales_words"), shader!("texel_int8")],
            Element::F32 => [shader!("scales_none"), shader!("texel_f32")],
        };
        self.files.extend(element);
        if matches!(cache.element, Element::F16 | Element::Bf16) {
            self.files.push(shader!("scales_none"));
        }
        self.files.push(match cache.paging {
            Some(_) => shader!("pages_table"),
            None => shader!("pages_contiguous"),
        });
    }
}
