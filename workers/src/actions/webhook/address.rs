//! Addresses that requests may go to. What counts is the address that is connected to: a name is
//! checked when it is resolved, and what was checked is what is used.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Lets public addresses pass, and others only where the installation says so.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) allow_private: bool,
}

/// An address that requests do not go to.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{host}' stands for {address}, which is no public address; actions.webhook has \
     allow_private_addresses for receivers in the platform's own network"
)]
pub(super) struct Private {
    host: String,
    address: IpAddr,
}

impl Guard {
    /// Checks all addresses of a host: with one that is not public, none is used.
    pub(super) fn check(&self, host: &str, addresses: &[IpAddr]) -> Result<(), Private> {
        match addresses.iter().find(|address| !self.allow_private && !is_public(**address)) {
            None => Ok(()),
            Some(address) => Err(Private { host: host.to_owned(), address: *address }),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let addresses: Vec<_> = found.iter().map(SocketAddr::ip).collect();
            guard.check(name.as_str(), &addresses)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the Internet's own, by the registries of special-purpose
/// addresses (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 224)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Only 2000::/3 is given out; of that, 2001:db8::/32 and 3fff::/20 are for documentation, and
    // the rest of 2001::/23 is for protocols.
    let is_global = segments[0] & 0xe000 == 0x2000;
    let is_documentation = (segments[0] == 0x2001 && segments[1] == 0x0db8)
        || (segments[0] == 0x3fff && segments[1] < 0x1000);
    let is_protocol = segments[0] == 0x2001 && segments[1] < 0x0200;
    is_global && !is_documentation && !is_protocol
}

/// The IPv4 address that an IPv6 address leads to: mapped, translated (64:ff9b::/96) or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(of(high, low)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
