//! Encoding of a baseline's types as bytes. Only the build that wrote a file reads it. A type is
//! encoded as its fields in the order of its `persist!` line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A type that can be encoded.
pub(super) trait Persist: Sized {
    fn save(&self, to: &mut Vec<u8>);
    /// Decodes a value from the front of the bytes; `None` for invalid bytes.
    fn load(from: &mut &[u8]) -> Option<Self>;
}

/// Saves a type by its parts: a field or a variant that is missing here does not compile.
macro_rules! persist {
    (struct $Type:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::protected::persist::Persist for $Type {
            fn save(&self, to: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($crate::protected::persist::Persist::save($field, to);)+
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                $(let $field = $crate::protected::persist::Persist::load(from)?;)+
                Some(Self { $($field),+ })
            }
        }
    };
    (enum $Type:ident { $($number:literal => $Variant:ident $(($inner:ident))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        impl $crate::protected::persist::Persist for $Type {
            fn save(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$Variant $(($inner))? $({ $($field),+ })? => {
                        to.push($number);
                        $($crate::protected::persist::Persist::save($inner, to);)?
                        $($($crate::protected::persist::Persist::save($field, to);)+)?
                    })+
                }
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                let (number, rest) = from.split_first()?;
                *from = rest;
                match number {
                    $($number => {
                        $(let $inner = $crate::protected::persist::Persist::load(from)?;)?
                        $($(let $field = $crate::protected::persist::Persist::load(from)?;)+)?
                        Some(Self::$Variant $(($inner))? $({ $($field),+ })?)
                    })+
                    _ => None,
                }
            }
        }
    };
}

pub(super) use persist;

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl Persist for $number {
            fn save(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn load(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        })+
    };
}

numbers!(u8, u32, u64, i64);

impl Persist for bool {
    fn save(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some(u8::load(from)? != 0)
    }
}

impl Persist for OsString {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(self.as_bytes(), to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from_vec(Vec::load(from)?))
    }
}

impl Persist for PathBuf {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(self.as_os_str().as_bytes(), to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        OsString::load(from).map(Self::from)
    }
}

impl Persist for String {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(self.as_bytes(), to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::load(from)?).ok()
    }
}

impl<T: Persist> Persist for Option<T> {
    fn save(&self, to: &mut Vec<u8>) {
        self.is_some().save(to);
        self.iter().for_each(|it| it.save(to));
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::load(from)? { Some(T::load(from)?) } else { None })
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.save(to);
        self.1.save(to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        Some((A::load(from)?, B::load(from)?))
    }
}

pub(super) fn save_all<'a, T: Persist + 'a>(
    all: impl IntoIterator<Item = &'a T>,
    to: &mut Vec<u8>,
) {
    let at = to.len();
    0u64.save(to);
    let count = all.into_iter().map(|it| it.save(to)).count() as u64;
    to[at..at + 8].copy_from_slice(&count.to_le_bytes());
}

/// As many as were saved. A number that is a lie ends with the bytes: nothing is reserved for it.
pub(super) fn load_all<T: Persist, C: FromIterator<T>>(from: &mut &[u8]) -> Option<C> {
    let count = u64::load(from)?;
    (0..count).map(|_| T::load(from)).collect()
}

impl<T: Persist> Persist for Vec<T> {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(self, to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        load_all(from)
    }
}

impl<T: Persist + Ord> Persist for BTreeSet<T> {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(self, to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        load_all(from)
    }
}

impl<K: Persist + Ord, V: Persist> Persist for BTreeMap<K, V> {
    fn save(&self, to: &mut Vec<u8>) {
        (self.len() as u64).save(to);
        for (key, value) in self {
            key.save(to);
            value.save(to);
        }
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        load_all(from)
    }
}
