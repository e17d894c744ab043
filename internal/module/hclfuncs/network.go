package hclfuncs

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"regexp"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

var networkFunctions = map[string]function.Function{
	"cidrcontains": textFunction(cty.Bool, []string{"containing_prefix", "contained_ip_or_prefix"}, cidrContains),
	"cidrhost":     cidrHost,
	"cidrnetmask":  textFunction(cty.String, []string{"prefix"}, cidrNetmask),
	"cidrsubnet":   cidrSubnet,
	"cidrsubnets":  cidrSubnets,
}

// leadingZeros are ignored by the engines: 010.0.0.1 is 10.0.0.1.
var leadingZeros = regexp.MustCompile(`\b0+([0-9A-Fa-f])`)

func parsePrefix(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(leadingZeros.ReplaceAllString(text, "$1"))
	if err != nil {
		return netip.Prefix{}, errors.New("the text is not a prefix in CIDR notation")
	}
	return prefix.Masked(), nil
}

func cidrContains(args []string) (cty.Value, error) {
	containing, err := parsePrefix(args[0])
	if err != nil {
		return cty.NilVal, err
	}
	contained, err := parsePrefix(args[1])
	if address, notAddress := netip.ParseAddr(leadingZeros.ReplaceAllString(args[1], "$1")); notAddress == nil &&
		address.Zone() == "" {
		address = address.Unmap()
		contained, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	switch {
	case err != nil:
		return cty.NilVal, errors.New("the text is neither an IP address nor a prefix in CIDR notation")
	case contained.Addr().Is4() != containing.Addr().Is4():
		return cty.NilVal, errors.New("one is an IPv4 address, the other an IPv6 address")
	}
	return cty.BoolVal(contained.Bits() >= containing.Bits() && containing.Contains(contained.Addr())), nil
}

func cidrNetmask(args []string) (cty.Value, error) {
	prefix, err := parsePrefix(args[0])
	if err != nil {
		return cty.NilVal, err
	}
	if !prefix.Addr().Is4() {
		return cty.NilVal, errors.New("an IPv6 prefix has no netmask")
	}
	ones := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return cty.StringVal(netip.PrefixFrom(ones, prefix.Bits()).Masked().Addr().String()), nil
}

// cidrHost counts addresses from the prefix's start, or, below zero, from its end.
var cidrHost = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "hostnum", Type: cty.Number}},
	Type:         function.StaticReturnType(cty.String),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		prefix, err := parsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		var host *big.Int
		if err := gocty.FromCtyValue(args[1], &host); err != nil {
			return cty.NilVal, err
		}
		size := addresses(prefix, prefix.Bits())
		if host.Sign() < 0 {
			host = new(big.Int).Add(size, host)
		}
		if host.Sign() < 0 || host.Cmp(size) >= 0 {
			return cty.NilVal, fmt.Errorf("a prefix of %d bits has no such host", prefix.Bits())
		}
		return cty.StringVal(offset(prefix.Addr(), host).String()), nil
	},
})

var cidrSubnet = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "prefix", Type: cty.String}, {Name: "newbits", Type: cty.Number}, {Name: "netnum", Type: cty.Number},
	},
	Type:         function.StaticReturnType(cty.String),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		prefix, err := parsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		var bits int
		var number *big.Int
		if err := errors.Join(gocty.FromCtyValue(args[1], &bits), gocty.FromCtyValue(args[2], &number)); err != nil {
			return cty.NilVal, err
		}
		if bits < 0 || bits > prefix.Addr().BitLen()-prefix.Bits() {
			return cty.NilVal, fmt.Errorf("a prefix of %d bits cannot be extended by %d", prefix.Bits(), bits)
		}
		if number.Sign() < 0 || number.BitLen() > bits {
			return cty.NilVal, fmt.Errorf("%d bits cannot number the subnet", bits)
		}
		length := prefix.Bits() + bits
		start := offset(prefix.Addr(), new(big.Int).Mul(number, addresses(prefix, length)))
		return cty.StringVal(netip.PrefixFrom(start, length).String()), nil
	},
})

// cidrSubnets lays subnets side by side, each aligned to its size.
var cidrSubnets = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "prefix", Type: cty.String}},
	VarParam:     &function.Parameter{Name: "newbits", Type: cty.Number},
	Type:         function.StaticReturnType(cty.List(cty.String)),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		prefix, err := parsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, err
		}
		if len(args) == 1 {
			return cty.ListValEmpty(cty.String), nil
		}
		whole, taken := addresses(prefix, prefix.Bits()), new(big.Int)
		subnets := make([]cty.Value, 0, len(args)-1)
		for i, arg := range args[1:] {
			var bits int
			if err := gocty.FromCtyValue(arg, &bits); err != nil {
				return cty.NilVal, function.NewArgError(i+1, err)
			}
			if bits < 1 || bits > 32 || bits > prefix.Addr().BitLen()-prefix.Bits() {
				return cty.NilVal, function.NewArgErrorf(i+1, "a prefix of %d bits cannot be extended by %d", prefix.Bits(), bits)
			}
			size := addresses(prefix, prefix.Bits()+bits)
			start := roundUp(taken, size)
			if taken = new(big.Int).Add(start, size); taken.Cmp(whole) > 0 {
				return cty.NilVal, function.NewArgErrorf(i+1, "the prefix has no room left for the subnet")
			}
			subnets = append(subnets, cty.StringVal(netip.PrefixFrom(offset(prefix.Addr(), start), prefix.Bits()+bits).String()))
		}
		return cty.ListVal(subnets), nil
	},
})

// addresses returns how many addresses a prefix of so many bits has, in the family of the given
// one.
func addresses(family netip.Prefix, bits int) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(family.Addr().BitLen()-bits))
}

func roundUp(number, unit *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(number, unit, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient.Mul(quotient, unit)
}

// offset returns the address so many behind base; the caller knows that there is one.
func offset(base netip.Addr, by *big.Int) netip.Addr {
	at := new(big.Int).SetBytes(base.AsSlice())
	raw := at.Add(at, by).FillBytes(make([]byte, base.BitLen()/8))
	address, _ := netip.AddrFromSlice(raw)
	return address
}
