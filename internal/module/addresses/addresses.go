package addresses

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// The fields of a pool.
const (
	fieldGroup    = "group"
	fieldResource = "resource"
	fieldName     = "name"
)

// Annotation holds the addresses that a Machine was given from pools, as JSON. The operator writes it before the instance is made, and the
// instance keeps them.
const Annotation = "machine-iac.io/addresses"

// ErrNone says that a Machine lacks an address from one of its pools. It may be given one later.
var ErrNone = errors.New("no address was given from a pool")

// Pool is a pool that a device takes one address from.
type Pool struct {
	// Device is the index of the device, and Index that of the pool in its list.
	Device int `json:"device"`
	Index  int `json:"pool"`
	// Group, Resource and Name are those of the pool's object. Resource is what claims call its kind.
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Name     string `json:"name"`
}

// String names the pool for people.
func (p Pool) String() string {
	return fmt.Sprintf("%s %s of %s, of network device %d", p.Resource, p.Name, p.Group, p.Device)
}

// Address is an address that a Machine was given from a pool.
type Address struct {
	Pool
	// Address has the length of its prefix: 192.168.1.10/24.
	Address string `json:"address"`
	// Gateway is empty where the pool names none.
	Gateway string `json:"gateway,omitempty"`
}

// New returns the address of a pool. The error says what cannot be used.
func New(pool Pool, address string, prefix int64, gateway string) (Address, error) {
	given := Address{Pool: pool, Address: fmt.Sprintf("%s/%d", address, prefix), Gateway: gateway}
	return given, given.check()
}

func (a Address) check() error {
	if _, err := netip.ParsePrefix(a.Address); err != nil {
		return fmt.Errorf("the address %q is none with the length of its prefix", a.Address)
	}
	if a.Gateway == "" {
		return nil
	}
	if _, err := netip.ParseAddr(a.Gateway); err != nil {
		return fmt.Errorf("the gateway %q of the address %s is no address", a.Gateway, a.Address)
	}
	return nil
}

// Pools returns the pools that a value of the variable provider_spec names, by device. Where claims is nil there are none.
func Pools(claims *v1alpha1.ModuleAddressClaims, providerSpec cty.Value) []Pool {
	if claims == nil {
		return nil
	}
	var pools []Pool
	for i, device := range elements(at(providerSpec, strings.Split(claims.Devices, "."))) {
		for j, pool := range elements(at(device, []string{claims.Pools})) {
			pools = append(pools, Pool{Device: i, Index: j, Group: text(pool, fieldGroup), Resource: text(pool, fieldResource), Name: text(pool, fieldName)})
		}
	}
	return pools
}

// Format returns addresses as the annotation of a Machine holds them.
func Format(given []Address) (string, error) {
	raw, err := json.Marshal(given)
	if err != nil {
		return "", fmt.Errorf("writing annotation %s: %w", Annotation, err)
	}
	return string(raw), nil
}

// Parse reads the addresses in the annotation of a Machine; none where it is empty.
func Parse(annotation string) ([]Address, error) {
	if annotation == "" {
		return nil, nil
	}
	var given []Address
	err := json.Unmarshal([]byte(annotation), &given)
	for i := 0; err == nil && i < len(given); i++ {
		err = given[i].check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w; remove it, and the addresses are read from the IPAddressClaims again", Annotation, err)
	}
	return given, nil
}

// Find returns the address that was given from a pool.
func Find(given []Address, pool Pool) (Address, bool) {
	for _, one := range given {
		if one.Pool == pool {
			return one, true
		}
	}
	return Address{}, false
}

// Apply returns a value of the variable provider_spec with the addresses that were given from its pools. It is the value itself where it names
// none. The error wraps [ErrNone] where a pool has given none.
func Apply(claims *v1alpha1.ModuleAddressClaims, providerSpec cty.Value, given []Address) (cty.Value, error) {
	pools := Pools(claims, providerSpec)
	if len(pools) == 0 {
		return providerSpec, nil
	}
	byDevice := map[int][]Address{}
	for _, pool := range pools {
		one, ok := Find(given, pool)
		if !ok {
			return cty.NilVal, fmt.Errorf("%w: %s", ErrNone, pool)
		}
		byDevice[pool.Device] = append(byDevice[pool.Device], one)
	}
	path := strings.Split(claims.Devices, ".")
	devices := elements(at(providerSpec, path))
	for i, device := range devices {
		devices[i] = withAddresses(claims, device, byDevice[i])
	}
	return with(providerSpec, path, cty.ListVal(devices)), nil
}

// withAddresses returns a device with the addresses behind its own.
func withAddresses(claims *v1alpha1.ModuleAddressClaims, device cty.Value, given []Address) cty.Value {
	if len(given) == 0 {
		return device
	}
	addresses := elements(at(device, []string{claims.Addresses}))
	var gateway string
	for _, one := range given {
		addresses = append(addresses, cty.StringVal(one.Address))
		if one.Gateway != "" {
			gateway = one.Gateway
		}
	}
	device = with(device, []string{claims.Addresses}, cty.ListVal(addresses))
	if gateway != "" && claims.Gateway != "" {
		device = with(device, []string{claims.Gateway}, cty.StringVal(gateway))
	}
	return device
}

// at returns the value at a path of attributes; cty.NilVal where there is none.
func at(value cty.Value, path []string) cty.Value {
	for _, step := range path {
		if value == cty.NilVal || !value.IsKnown() || value.IsNull() || !value.Type().IsObjectType() || !value.Type().HasAttribute(step) {
			return cty.NilVal
		}
		value = value.GetAttr(step)
	}
	return value
}

// with returns an object with another value at a path of attributes that it has.
func with(object cty.Value, path []string, value cty.Value) cty.Value {
	if len(path) == 0 {
		return value
	}
	attributes := object.AsValueMap()
	attributes[path[0]] = with(attributes[path[0]], path[1:], value)
	return cty.ObjectVal(attributes)
}

// elements returns those of a list; none where it is null or not known.
func elements(list cty.Value) []cty.Value {
	if list == cty.NilVal || !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return nil
	}
	return list.AsValueSlice()
}

// text returns a string attribute; empty where it is null or not known.
func text(object cty.Value, name string) string {
	value := at(object, []string{name})
	if value == cty.NilVal || !value.IsKnown() || value.IsNull() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}
