//! Things that happen later, each in a thread of its own that ends with it.

use std::time::Duration;

use crate::world::{World, changed, world};

/// Does `what` to the world in `ms` milliseconds; 0: now.
pub fn after(w: &mut World, ms: u64, what: impl FnOnce(&mut World) + Send + 'static) {
    if ms == 0 {
        what(w);
        return;
    }
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(ms));
        what(&mut world());
        changed();
    });
}
