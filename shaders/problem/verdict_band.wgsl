// Which keys of a tile count: decided by lengths and band alone, the same for all threads.

const NONE_SEEN = 0u;
const SOME_SEEN = 1u;
const ALL_SEEN = 2u;

fn verdict(local: u32, whole: bool, seen: u32) -> u32 {
    return select(SOME_SEEN, ALL_SEEN, whole);
}
