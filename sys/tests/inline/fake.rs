//! Contexts whose tables hold functions that write down how they were called.

use rpma_sys::*;
use std::cell::RefCell;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::ptr;

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub fn note(call: String) {
    CALLS.with_borrow_mut(|calls| calls.push(call));
}

/// The calls of this thread since the last time.
pub fn calls() -> Vec<String> {
    CALLS.take()
}

/// An address that nothing dereferences.
pub fn at<T>(address: usize) -> *mut T {
    ptr::without_provenance_mut(address)
}

/// Functions with the C calling convention that note their name and arguments, and return a fixed
/// value.
macro_rules! recorders {
    ($($(#[$attr:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty = $value:expr)?;)*) => {$(
        $(#[$attr])*
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            #[allow(unused_mut)]
            let mut args: Vec<String> = Vec::new();
            $(args.push(format!("{:?}", $arg));)*
            $crate::fake::note(format!("{}({})", stringify!($name), args.join(", ")));
            $($value)?
        }
    )*};
}
pub(crate) use recorders;

/// What a recorder notes for these arguments.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let args: Vec<String> = vec![$(format!("{:?}", $arg)),*];
        format!("{}({})", stringify!($name), args.join(", "))
    }};
}
pub(crate) use call;

/// A context with the extended table in front of it, as much of the table as there is memory for.
pub struct Table {
    memory: Box<[MaybeUninit<u64>]>,
    /// Offset in `verbs_context` of the first byte of `memory`.
    start: usize,
}

impl Table {
    /// The whole table, as the library of the bindings' release makes it.
    pub fn new(fill: impl FnOnce(&mut verbs_context)) -> Self {
        Self::cut(0, fill)
    }

    /// The table of an older library, which begins at offset `start`.
    pub fn cut(start: usize, fill: impl FnOnce(&mut verbs_context)) -> Self {
        let mut table = verbs_context {
            sz: size_of::<verbs_context>() - start,
            ..Default::default()
        };
        table.context.abi_compat = __VERBS_ABI_IS_EXTENDED();
        fill(&mut table);
        Self {
            memory: words_of(&table)[start / 8..].into(),
            start,
        }
    }

    pub fn context(&mut self) -> *mut ibv_context {
        let offset = offset_of!(verbs_context, context) - self.start;
        // SAFETY: the context is the end of the memory.
        unsafe { self.memory.as_mut_ptr().byte_add(offset).cast() }
    }
}

/// A struct as the words of its memory, padding and all.
pub fn words_of<T>(value: &T) -> &[MaybeUninit<u64>] {
    const { assert!(align_of::<T>() == 8) };
    // SAFETY: aligned for words and as long as that many; what is not initialised may stay so.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>() / 8) }
}

/// Runs `check` on every kind of context that does not have the entry at `offset`. `fill` puts the
/// entry there: where something else says that it is absent, it must not be reached.
pub fn without(
    offset: usize,
    fill: impl Fn(&mut verbs_context),
    check: impl Fn(&str, *mut ibv_context),
) {
    let size = size_of::<verbs_context>();
    let mut empty = Table::new(|_| {});
    check("a null entry", empty.context());
    let mut small = Table::new(|table| {
        fill(table);
        table.sz = size - offset - 1;
    });
    check("a size that ends before the entry", small.context());
    let mut older = Table::cut(offset + 8, |_| {});
    check("memory that ends before the entry", older.context());
    for abi in [0, u32::MAX as usize] {
        let mut plain = Table::new(|table| {
            fill(table);
            table.context.abi_compat = at(abi);
        });
        check("no table", plain.context());
    }
}

/// Runs `check` on a context that has the entry at `offset`, and on one whose table begins with it.
pub fn with(offset: usize, fill: impl Fn(&mut verbs_context), check: impl Fn(*mut ibv_context)) {
    check(Table::new(&fill).context());
    check(Table::cut(offset, &fill).context());
}
