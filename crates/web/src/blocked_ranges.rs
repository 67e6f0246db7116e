//! Address ranges that are always blocked: this machine, its networks, and addresses that are not
//! on the public internet. Pure; checked after each lookup.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address, prefix length, reason.
type Range<A> = (A, u32, &'static str);

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

/// From IANA's registry of special-purpose addresses, and special addresses of clouds.
const V4: &[Range<u32>] = &[
    (v4(0, 0, 0, 0), 8, "this host"),
    (v4(10, 0, 0, 0), 8, "a private network"),
    (v4(100, 64, 0, 0), 10, "a carrier-grade NAT network"),
    (v4(127, 0, 0, 0), 8, "this host"),
    (v4(169, 254, 0, 0), 16, "a link-local address, where clouds publish credentials"),
    (v4(172, 16, 0, 0), 12, "a private network"),
    (v4(192, 0, 0, 0), 24, "a protocol address"),
    (v4(192, 0, 2, 0), 24, "an address for documentation"),
    (v4(192, 88, 99, 0), 24, "a 6to4 relay"),
    (v4(192, 168, 0, 0), 16, "a private network"),
    (v4(198, 18, 0, 0), 15, "a benchmarking address"),
    (v4(198, 51, 100, 0), 24, "an address for documentation"),
    (v4(203, 0, 113, 0), 24, "an address for documentation"),
    (v4(224, 0, 0, 0), 4, "a multicast address"),
    (v4(240, 0, 0, 0), 4, "a reserved address"),
    // A public address that reaches the host of a virtual machine.
    (v4(168, 63, 129, 16), 32, "a cloud's internal address"),
];

const fn v6(a: u16, b: u16, c: u16) -> u128 {
    (a as u128) << 112 | (b as u128) << 96 | (c as u128) << 80
}

/// Special ranges in 2000::/3, the only range that is allocated.
const V6: &[Range<u128>] = &[
    (v6(0x2001, 0, 0), 23, "a protocol address"),
    (v6(0x2001, 0xdb8, 0), 32, "an address for documentation"),
    (v6(0x3fff, 0, 0), 20, "an address for documentation"),
];

/// IPv4 addresses embedded in IPv6: prefix, its length, and the shift of the embedded address.
const EMBEDDED_V4: &[(u128, u32, u32)] = &[
    // ::ffff:a.b.c.d
    (0xffff << 32, 96, 0),
    // 64:ff9b::a.b.c.d
    (v6(0x64, 0xff9b, 0), 96, 0),
    // 2002:ab:cd::
    (v6(0x2002, 0, 0), 16, 80),
];

/// The reason why an address is blocked; `None` for an address on the public internet.
#[must_use]
pub fn blocked_reason(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => blocked_v4(address),
        IpAddr::V6(address) => blocked_v6(address),
    }
}

fn blocked_v4(address: Ipv4Addr) -> Option<&'static str> {
    let address = address.to_bits();
    let within = |(first, length, _): &&Range<u32>| (address ^ first) >> (32 - length) == 0;
    V4.iter().find(within).map(|(_, _, why)| *why)
}

#[allow(clippy::cast_possible_truncation, reason = "the lower 32 bits are what is meant")]
fn blocked_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() || address.is_loopback() {
        return Some("this host");
    }
    let bits = address.to_bits();
    let shares = |first: u128, length: u32| (bits ^ first) >> (128 - length) == 0;
    for &(first, length, above) in EMBEDDED_V4 {
        if shares(first, length) {
            return blocked_v4(Ipv4Addr::from_bits((bits >> above) as u32));
        }
    }
    match address.segments()[0] {
        0xfc00..=0xfdff => return Some("a private network"),
        0xfe80..=0xfebf => return Some("a link-local address"),
        0xfec0..=0xfeff => return Some("a site-local address"),
        0xff00..=0xffff => return Some("a multicast address"),
        0x2000..=0x3fff => {}
        _ => return Some("a reserved address"),
    }
    V6.iter().find(|(first, length, _)| shares(*first, *length)).map(|(_, _, why)| *why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The edges of each range, and what lies right beside it.
    #[test]
    fn what_is_barred_and_what_is_not() {
        for (address, expected) in [
            ("0.0.0.0", true),
            ("0.255.255.255", true),
            ("1.0.0.0", false),
            ("9.255.255.255", false),
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("100.63.255.255", false),
            ("100.64.0.0", true),
            ("100.100.100.200", true),
            ("100.127.255.255", true),
            ("100.128.0.0", false),
            ("126.255.255.255", false),
            ("127.0.0.1", true),
            ("127.255.255.255", true),
            ("128.0.0.0", false),
            ("169.253.255.255", false),
            ("169.254.169.254", true),
            ("169.254.170.2", true),
            ("169.255.0.0", false),
            ("172.15.255.255", false),
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.0.0.192", true),
            ("192.0.1.0", false),
            ("192.0.2.1", true),
            ("192.88.99.1", true),
            ("192.167.255.255", false),
            ("192.168.0.0", true),
            ("192.168.255.255", true),
            ("192.169.0.0", false),
            ("198.17.255.255", false),
            ("198.18.0.0", true),
            ("198.19.255.255", true),
            ("198.20.0.0", false),
            ("198.51.100.1", true),
            ("203.0.113.1", true),
            ("203.0.114.1", false),
            ("223.255.255.255", false),
            ("224.0.0.1", true),
            ("239.255.255.255", true),
            ("240.0.0.1", true),
            ("255.255.255.255", true),
            ("168.63.129.16", true),
            ("168.63.129.17", false),
            ("8.8.8.8", false),
            ("93.184.216.34", false),
            ("::", true),
            ("::1", true),
            ("::2", true),
            ("::127.0.0.1", true),
            ("::8.8.8.8", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:10.1.2.3", true),
            ("::ffff:169.254.169.254", true),
            ("::ffff:8.8.8.8", false),
            ("::ffff:0:192.168.1.1", true),
            ("64:ff9b::10.0.0.1", true),
            ("64:ff9b::8.8.8.8", false),
            ("64:ff9b:1::1", true),
            ("100::1", true),
            ("2002:7f00:1::", true),
            ("2002:c0a8:101::1", true),
            ("2002:808:808::1", false),
            ("2001::1", true),
            ("2001:1ff::1", true),
            ("2001:200::1", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
            ("2606:2800:220:1:248:1893:25c8:1946", false),
            ("2a00:1450:4001::1", false),
            ("3fff::1", true),
            ("3fff:1000::1", false),
            ("4000::1", true),
            ("fbff::1", true),
            ("fc00::1", true),
            ("fd00:ec2::254", true),
            ("fdff:ffff::1", true),
            ("fe80::1", true),
            ("febf::1", true),
            ("fec0::1", true),
            ("ff02::1", true),
            ("ffff::1", true),
        ] {
            let parsed: IpAddr = address.parse().unwrap();
            assert_eq!(
                blocked_reason(parsed).is_some(),
                expected,
                "{address}: {:?}",
                blocked_reason(parsed)
            );
        }
    }

    proptest! {
        /// One written in the other is what the one is.
        #[test]
        fn an_address_in_an_address_is_judged_as_itself(bits in any::<u32>()) {
            let inner = Ipv4Addr::from_bits(bits);
            let expected = blocked_reason(inner.into());
            let bits = u128::from(bits);
            for outer in [0xffff << 32 | bits, v6(0x64, 0xff9b, 0) | bits, v6(0x2002, 0, 0) | bits << 80] {
                prop_assert_eq!(blocked_reason(Ipv6Addr::from_bits(outer).into()), expected);
            }
        }

        /// No address that the standard library has a word for slips through.
        #[test]
        fn nothing_private_is_let_through(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_unspecified()
                || address.is_documentation();
            prop_assert!(!special || blocked_reason(address.into()).is_some(), "{}", address);
        }
    }
}
