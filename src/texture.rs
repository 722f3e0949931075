//! Rows in a storage texture: on some software adapters a load from one costs a twentieth of a load
//! from a buffer.

use crate::Error;

/// One texel: four f32, eight 16-bit numbers or sixteen bytes.
pub(crate) const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba32Uint;
pub(crate) const TEXEL_BYTES: u32 = 16;
/// Texels of one line of the texture.
const WIDTH: u32 = 4096;

/// Refuses more texels than a texture of this device holds.
pub(crate) fn check(texels: u64, limits: &wgpu::Limits) -> Result<(), Error> {
    let (what, got) = ("max_texture_dimension_2d", limits.max_texture_dimension_2d.into());
    match [WIDTH.into(), lines(texels)].into_iter().find(|&need| need > got) {
        Some(need) => Err(Error::Limit { what, need, got }),
        None if limits.max_storage_textures_per_shader_stage == 0 => {
            Err(Error::Limit { what: "max_storage_textures_per_shader_stage", need: 1, got: 0 })
        }
        None => Ok(()),
    }
}

pub(crate) fn bytes(texels: u64) -> u64 {
    lines(texels) * u64::from(WIDTH * TEXEL_BYTES)
}

/// A texture of checked size.
pub(crate) fn create(device: &wgpu::Device, label: &str, texels: u64) -> wgpu::TextureView {
    let height = lines(texels) as u32;
    let texture = device.create_texture(&wgpu::TextureDescriptor {
        label: Some(label),
        size: wgpu::Extent3d { width: WIDTH, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: FORMAT,
        usage: wgpu::TextureUsages::STORAGE_BINDING,
        view_formats: &[],
    });
    texture.create_view(&wgpu::TextureViewDescriptor::default())
}

fn lines(texels: u64) -> u64 {
    texels.div_ceil(WIDTH.into()).max(1)
}
