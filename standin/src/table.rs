//! Objects by address. Destroyed ones stay in quarantine, so that a late use is recognised and
//! never executed.

use std::collections::{HashMap, HashSet, VecDeque};

use libc::c_int;

use crate::calls::Call;
use crate::violations::violation;

/// How many destroyed objects of a kind keep their memory.
const QUARANTINE: usize = 4096;

/// Something that a program holds by the address of a C struct.
pub trait Object {
    /// The C struct.
    type Ffi;
    /// What to call it in a message.
    const KIND: &'static str;
    /// Its address.
    fn ffi(&self) -> *mut Self::Ffi;
}

/// All objects of one kind.
pub struct Table<T: Object> {
    live: HashMap<usize, T>,
    dead: HashSet<usize>,
    quarantine: VecDeque<usize>,
}

/// A zeroed C struct on the heap; the table frees it.
pub fn allocate<F>() -> *mut F {
    let layout = std::alloc::Layout::new::<F>();
    // SAFETY: the layout of a C struct of libibverbs or librdmacm, none of which is empty.
    let p = unsafe { std::alloc::alloc_zeroed(layout) };
    if p.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    p.cast()
}

impl<T: Object> Table<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            live: HashMap::new(),
            dead: HashSet::new(),
            quarantine: VecDeque::new(),
        }
    }

    /// Takes an object in; gives its address.
    pub fn insert(&mut self, object: T) -> *mut T::Ffi {
        let p = object.ffi();
        self.live.insert(p as usize, object);
        p
    }

    /// The object that a program named in a call. A wrong pointer is a violation and EINVAL.
    pub fn get(&mut self, p: *mut T::Ffi, call: Call) -> Result<&mut T, c_int> {
        if !self.live.contains_key(&(p as usize)) {
            self.stray(p as usize, call);
            return Err(libc::EINVAL);
        }
        self.live.get_mut(&(p as usize)).ok_or(libc::EINVAL)
    }

    fn stray(&self, key: usize, call: Call) {
        let kind = T::KIND;
        let why = if key == 0 {
            "is NULL"
        } else if self.dead.contains(&key) {
            "was destroyed before"
        } else {
            "was never made here"
        };
        violation(&format!("{}: {kind} {key:#x} {why}", call.name()));
    }

    /// The object at this address, if it lives.
    pub fn at(&self, key: usize) -> Option<&T> {
        self.live.get(&key)
    }

    /// The object at this address, if it lives.
    pub fn at_mut(&mut self, key: usize) -> Option<&mut T> {
        self.live.get_mut(&key)
    }

    /// Takes an object out; its memory goes to quarantine.
    pub fn remove(&mut self, key: usize) -> Option<T> {
        let object = self.live.remove(&key)?;
        self.dead.insert(key);
        self.quarantine.push_back(key);
        if self.quarantine.len() > QUARANTINE {
            if let Some(old) = self.quarantine.pop_front() {
                self.dead.remove(&old);
                // SAFETY: it came from `allocate::<T::Ffi>` and only the quarantine still knew it.
                unsafe {
                    std::alloc::dealloc(old as *mut u8, std::alloc::Layout::new::<T::Ffi>());
                }
            }
        }
        Some(object)
    }

    /// The addresses of all that live, lowest first.
    pub fn keys(&self) -> Vec<usize> {
        let mut keys: Vec<usize> = self.live.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// All that live.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.live.iter().map(|(k, v)| (*k, v))
    }

    /// How many live.
    pub fn len(&self) -> usize {
        self.live.len()
    }
}
