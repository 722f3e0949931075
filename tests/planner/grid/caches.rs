//! Caches that a device cannot hold: refused by what attends to them, by the names that the cache
//! itself would give. And what fills and reads them, on small devices.

use wgpu_attention::{Append, CacheShape, Element, Error, KvCache, Pool};

use super::devices::Device;

fn named(error: Option<Error>) -> &'static str {
    match error {
        Some(Error::Limit { what, need, got }) if need > got => what,
        error => panic!("{error:?}"),
    }
}

#[test]
fn memory() {
    let cache = CacheShape::new;
    let no_textures =
        Device::new("no textures").with(|limits| limits.max_storage_textures_per_shader_stage = 0);
    let table = [
        ("cache", Device::new("pool"), cache(1, 8, 800_000, 64)),
        ("page copies of the cache", Device::new("pages"), cache(1 << 16, 8, 16, 64).paged(16, 16)),
        (
            "tables of the cache",
            Device::new("scales"),
            cache(1, 1, 20_000_000, 1).element(Element::Int8),
        ),
        (
            "max_texture_dimension_2d",
            Device::new("texels"),
            cache(1, 8, 200_000, 64).pool(Pool::Texture),
        ),
        (
            "max_storage_textures_per_shader_stage",
            no_textures,
            cache(1, 8, 99, 64).pool(Pool::Texture),
        ),
    ];
    for (want, device, shape) in table {
        let pretend = device.pretend();
        let made = KvCache::new(&pretend.attention, shape).err();
        let planned = pretend.attention.plan(&shape.problem(8, 1)).err();
        assert_eq!(planned, made, "{want}");
        assert_eq!(named(planned), want);
    }
}

#[test]
fn filled_and_read() {
    let no_textures =
        Device::new("no textures").with(|limits| limits.max_storage_textures_per_shader_stage = 0);
    let shape = CacheShape::new(1, 8, 99, 64).paged(16, 8);
    let threads = "max_compute_invocations_per_workgroup";
    for (want, device, pool) in [
        ("max_storage_textures_per_shader_stage", no_textures, Pool::Texture),
        (threads, Device::new("32 threads").threads(32), Pool::Buffer),
        (threads, Device::new("1 thread").threads(1), Pool::Texture),
    ] {
        let (pretend, shape) = (device.pretend(), shape.pool(pool));
        assert_eq!(named(pretend.attention.plan_append(&Append::new(shape, 3)).err()), want);
        assert_eq!(named(pretend.attention.plan_unpack(shape).err()), want);
    }
}
