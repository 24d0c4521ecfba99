//! Guests that are small to write and expensive to read. They are refused by the
//! limits of the parser or of the compiler, or they are harmless. They never crash a
//! process.

use super::{CLASS, has_vm, info};
use crate::case::Case;
use serde_json::json;
use tests::hostile::binary::{component, leb, module, section, vector};
use tests::{CPI_ERROR, Job, hostile};

/// The expected result for a guest.
enum End {
    /// The guest is refused when it is read or compiled.
    Refused(&'static str),
    /// The guest is compiled, but is not a CPI.
    NotACpi,
    /// The guest still works.
    Answers,
}

pub(super) fn cases() -> Vec<Case> {
    let bomb = |name: &str, end: End, make: fn() -> Vec<u8>| {
        Case::offline(CLASS, name, &[], move || {
            let job = Job::new().guest_bytes(&make());
            match end {
                End::Refused(said) => drop(info(&job).fails(CPI_ERROR, &["guest.wasm: the guest ", said])),
                End::NotACpi => drop(info(&job).fails(CPI_ERROR, &["does not fit the world bosh:cpi"])),
                End::Answers => assert_eq!(*has_vm(&job).result(), true),
            }
            // `check` reads the same file in its own process, and must not crash.
            job.check();
        })
    };
    vec![
        Case::offline(CLASS, "a hundred thousand functions", &["limit-compile_seconds"], || {
            let body = [&[0][..], &[0x20, 0, 0x41, 3, 0x6c, 0x21, 0].repeat(30), &[0x20, 0, 0x0b]].concat();
            let guest = functions(100_000, &body);
            let job = Job::new().guest_bytes(&guest).limits(json!({"compile_seconds": 1}));
            info(&job).reaches("compile_seconds");
            assert!(job.cached("").is_empty());
        }),
        bomb("blocks ten thousand deep", End::NotACpi, || {
            functions(1, &[&[0][..], &[0x02, 0x40].repeat(10_000), &[0x0b].repeat(10_000), &[0x20, 0, 0x0b]].concat())
        }),
        bomb("a branch with half a million targets", End::Refused("exceeds the implementation limit of 65520"), || {
            functions(1, &[&[0, 0x20, 0, 0x20, 0, 0x0e][..], &leb(500_000), &[0].repeat(500_001), &[0x0b]].concat())
        }),
        bomb("a function with four billion variables", End::Refused("too many locals"), || {
            functions(1, &[&[1][..], &leb(u32::MAX as usize), &[0x7f, 0x20, 0, 0x0b]].concat())
        }),
        bomb("a function body without end", End::Refused("function body size count exceeds limit"), || {
            functions(1, &[&[0][..], &[0x01].repeat(8 << 20), &[0x20, 0, 0x0b]].concat())
        }),
        bomb("a hundred thousand globals and types", End::NotACpi, || {
            let globals = section(6, &vector(100_000, &[0x7f, 0, 0x41, 0, 0x0b]));
            component(&[module(&[section(1, &vector(100_000, &[0x60, 0, 0])), globals].concat())])
        }),
        bomb("an unknown section of fifty megabytes", End::Answers, || {
            hostile::with_section(hostile::guest("small"), "junk", &vec![0; 50 << 20])
        }),
        bomb("name sections that are huge, malformed or repeated", End::Answers, || {
            let mut guest = hostile::with_section(hostile::guest("small"), "name", &vec![0xff; 1 << 20]);
            for _ in 0..1000 {
                guest = hostile::with_section(guest, "name", b"\x01\x06\x01\x00\x03\xff\xff\xff");
            }
            guest
        }),
        bomb("components within components, two thousand deep", End::NotACpi, || {
            (0..2_000).fold(component(&[]), |inner, _| component(&[section(4, &inner)]))
        }),
        bomb("lists of lists, ten thousand deep", End::Refused("type nesting is too deep"), || {
            let mut types = leb(10_000);
            types.push(0x79);
            for index in 0..9_999 {
                types.extend([&[0x70][..], &type_index(index)].concat());
            }
            component(&[section(7, &types)])
        }),
        bomb("types that double forty times", End::Refused("effective type size exceeds the limit"), || {
            let mut types = leb(41);
            types.push(0x79);
            for index in 0..40 {
                types.extend([&[0x6f, 2][..], &type_index(index), &type_index(index)].concat());
            }
            component(&[section(7, &types)])
        }),
        bomb(
            "counts and lengths that are too large",
            End::Refused("is a damaged component: section too large"),
            || {
                let lying = [&[1][..], &leb(u32::MAX as usize), &[0x60, 0, 0]].concat();
                component(&[module(&lying)])
            },
        ),
    ]
}

/// Encodes the index of a type as a signed number, as primitive types are negative ones.
fn type_index(index: usize) -> Vec<u8> {
    let mut bytes = leb(index);
    if let Some(last) = bytes.last_mut().filter(|last| **last & 0x40 != 0) {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}

/// Returns a component with one module that has `count` functions of this body, i32 to i32.
fn functions(count: usize, body: &[u8]) -> Vec<u8> {
    let types = section(1, &vector(1, &[0x60, 1, 0x7f, 1, 0x7f]));
    let declared = section(3, &vector(count, &[0]));
    let code = section(10, &vector(count, &[&leb(body.len()), body].concat()));
    component(&[module(&[types, declared, code].concat())])
}
