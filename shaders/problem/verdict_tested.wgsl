// Which keys of a tile count: decided by what all threads see of mask and bias.

const NONE_SEEN = 0u;
const SOME_SEEN = 1u;
const ALL_SEEN = 2u;

var<workgroup> sightings: atomic<u32>;  // bit 0: a key is seen; bit 1: a key is not
var<workgroup> decided: u32;

fn verdict(local: u32, whole: bool, seen: u32) -> u32 {
    if (local == 0u) {
        atomicStore(&sightings, 0u);
    }
    workgroupBarrier();
    atomicOr(&sightings, select(0u, 1u, seen != 0u) | select(0u, 2u, seen != 0xffffu));
    workgroupBarrier();
    if (local == 0u) {
        let bits = atomicLoad(&sightings);
        decided = select(select(SOME_SEEN, ALL_SEEN, bits == 1u), NONE_SEEN, bits == 2u);
    }
    return workgroupUniformLoad(&decided);
}
