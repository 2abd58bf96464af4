package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// rule refuses the addresses in some networks, for a reason.
type rule struct {
	reason   string
	networks []netip.Prefix
	// liftable rules make way for the operator's own list.
	liftable bool
	// guests rules are about sandboxes: the server itself has services there.
	guests bool
}

// rules are tried in order; the first that holds an address tells why. The
// metadata services of clouds come first: some of their addresses are public.
var rules = []rule{
	{reason: "it is a metadata service of a cloud", networks: prefixes(
		"169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128",
	)},
	{reason: "it is the loopback of the host", guests: true, networks: prefixes("127.0.0.0/8", "::1/128")},
	{reason: "it is no address of a host", networks: prefixes("0.0.0.0/8", "::/128")},
	{reason: "it is a link-local address", networks: prefixes("169.254.0.0/16", "fe80::/10")},
	{reason: "it is a multicast or broadcast address", networks: prefixes("224.0.0.0/4", "ff00::/8", "255.255.255.255/32")},
	{reason: "it is in a private network", liftable: true, guests: true, networks: prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10",
	)},
	{reason: "it is in a reserved network", liftable: true, networks: prefixes(
		"192.0.0.0/24", "240.0.0.0/4", "100::/64",
	)},
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Check tells why a sandbox must not reach addr; "" says that it may. The
// prefixes in allowed lift the rules about private and reserved networks, and
// own holds the addresses of this machine.
func Check(addr netip.Addr, allowed []netip.Prefix, own []netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return "it is no address"
	}
	for _, a := range append([]netip.Addr{addr}, embedded(addr)...) {
		if reason := check(a, allowed, own); reason != "" {
			return reason
		}
	}
	return ""
}

func check(addr netip.Addr, allowed []netip.Prefix, own []netip.Addr) string {
	inside := func(p netip.Prefix) bool { return p.Contains(addr) }
	for _, r := range rules {
		if !slices.ContainsFunc(r.networks, inside) {
			continue
		}
		if !r.liftable {
			return r.reason
		}
		if !slices.ContainsFunc(allowed, inside) {
			return r.reason + ", which is not among the allowed ones"
		}
		break
	}
	if slices.Contains(own, addr) {
		return "it is an address of the host itself"
	}
	return ""
}

// CheckService tells why the server must not speak to a service at addr; ""
// says that it may. The prefixes in allowed lift every rule.
func CheckService(addr netip.Addr, allowed []netip.Prefix) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return "it is no address"
	}
	if addr.IsLoopback() { // ::1 stands for no IPv4 address, whatever its form
		return ""
	}
	for _, a := range append([]netip.Addr{addr}, embedded(addr)...) {
		inside := func(p netip.Prefix) bool { return p.Contains(a) }
		for _, r := range rules {
			if !slices.ContainsFunc(r.networks, inside) {
				continue
			}
			if !r.guests && !slices.ContainsFunc(allowed, inside) {
				return r.reason
			}
			break
		}
	}
	return ""
}

// embedded returns the IPv4 addresses that an IPv6 address stands for, where a
// gateway on the way would unpack them: IPv4-compatible, NAT64, 6to4.
func embedded(addr netip.Addr) []netip.Addr {
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	at := -1
	switch {
	case netip.MustParsePrefix("::/96").Contains(addr), netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		at = 12
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		at = 2
	}
	if at < 0 {
		return nil
	}
	return []netip.Addr{netip.AddrFrom4([4]byte(b[at : at+4]))}
}

// ownAddresses returns the addresses of this machine's interfaces, as they
// are now.
func ownAddresses() ([]netip.Addr, error) {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list own addresses: %w", err)
	}
	var own []netip.Addr
	for _, n := range nets {
		if ipnet, ok := n.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ipnet.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own, nil
}
